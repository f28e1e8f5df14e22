// SPDX-License-Identifier: Apache-2.0

//go:build linux

package feature

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// feature is a feature that kernels have since a version.
type feature struct {
	name         string
	major, minor int
	// probe asks the kernel, in a namespace with an interface, without the
	// project's code. The errno in lack means that the kernel lacks the
	// feature.
	probe func(t *testing.T, p *testnet.Pair) error
	lack  []unix.Errno
	// use fails the test unless the project can use it.
	use func(t *testing.T, p *testnet.Pair)
}

// features are in the order of their age.
var features = []feature{
	{"native_XDP_on_veth", 4, 19, probeNative, []unix.Errno{unix.EOPNOTSUPP}, useNative},
	{"need-wakeup", 5, 4, probeNeedWakeup, []unix.Errno{unix.ENOSYS}, useNeedWakeup},
	{"mmapable_maps", 5, 5, probeMmapable, []unix.Errno{unix.EINVAL}, useMmapable},
	{"bpf_link", 5, 9, probeLink, []unix.Errno{unix.EINVAL}, useLink},
	{"shared_UMEM", 5, 10, probeShared, []unix.Errno{unix.EINVAL}, useShared},
	{"busy_poll", 5, 11, probeBusyPoll, []unix.Errno{unix.ENOPROTOOPT}, useBusyPoll},
	{"execution_in_XDP", 5, 18, probeExecution, []unix.Errno{unix.EINVAL}, useExecution},
	{"xdp-features", 6, 3, probeXDPFeatures, []unix.Errno{unix.ENOENT}, useXDPFeatures},
	{"multi-buffer", 6, 6, probeMultiBuffer, []unix.Errno{unix.EINVAL}, useMultiBuffer},
	{"XDP_MAX_TX_SKB_BUDGET", 6, 17, probeBudget, []unix.Errno{unix.ENOPROTOOPT}, useBudget},
}

func TestFeature(t *testing.T) {
	testnet.Require(t)
	release, running := testnet.Kernel(t)
	for _, f := range features {
		t.Run(f.name, func(t *testing.T) {
			p := testnet.NewPair(t, testnet.Options{Queues: 2})
			err := p.A.Do(func() error { return f.probe(t, p) })
			if f.lacking(err) {
				since := kernel.Version{Major: f.major, Minor: f.minor}
				if running.AtLeast(since) {
					t.Fatalf("Linux %s says %v, but has this since %v", release, err, since)
				}
				t.Skipf("Linux %s says %v; it takes %v", release, err, since)
			}
			if err != nil {
				t.Fatalf("neither there nor lacking: %v", err)
			}
			// This takes another pair, since the probe's sockets are still on
			// the first.
			f.use(t, testnet.NewPair(t, testnet.Options{Queues: 2}))
		})
	}
}

func (f *feature) lacking(err error) bool {
	for _, e := range f.lack {
		if err == e {
			return true
		}
	}
	return false
}
