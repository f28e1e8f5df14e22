// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Both sides and the kernel's work of both on one thread, over veth: cpu-ns/op is the CPU
// time of an operation with everything that it needs, and says something even on a busy
// machine, where times by the clock do not.
func BenchmarkVethCPU(b *testing.B) {
	for _, mtu := range []int{1500, 3498, 9000} {
		for _, c := range []struct {
			name string
			run  func(*testing.B, [2]*side)
		}{
			{"fetch-add", benchmarkFetchTrip},
			{"message", benchmarkMessageTrip},
			{"stream of 4 KiB messages", benchmarkMessageStream},
			{"write of 1 MiB", benchmarkWrite},
		} {
			b.Run(fmt.Sprintf("MTU=%d/%s", mtu, c.name), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				attr := fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain}
				one, other, _ := openVeth(b, testnet.Options{MTU: mtu}, attr, attr)
				c.run(b, sidesOf(b, one, other, writesAtOnce<<20))
			})
		}
	}
}

func benchmarkFetchTrip(b *testing.B, sides [2]*side) {
	from, to := sides[0], sides[1]
	msg := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Result: make([]byte, 8), Count: 1, Dest: from.peer, Key: 1,
		Datatype: atomic.Uint64, Op: atomic.Sum}
	b.ReportAllocs()
	start := cpu()
	for b.Loop() {
		if err := from.ep.FetchAtomic(&msg, 0); err != nil {
			b.Fatal(err)
		}
		for n := 0; n == 0; n, _ = from.collect(b) {
			to.dom.Progress()
		}
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}
