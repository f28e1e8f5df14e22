// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func TestPolicyNames(t *testing.T) {
	for policy, want := range map[VLANPolicy]string{VLANAny: "any", VLANUntagged: "untagged", 100: "100"} {
		if got := policy.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if v, err := ParseVLAN(want); v != policy || err != nil {
			t.Errorf("%q is read as %v, %v", want, v, err)
		}
	}
	for _, s := range []string{"", "0", "4095", "-1", "all"} {
		if v, err := ParseVLAN(s); !errors.Is(err, ErrConfig) {
			t.Errorf("%q is read as %v, %v", s, v, err)
		}
	}
	for _, c := range []struct {
		policy VLANPolicy
		vlan   uint16
		want   bool
	}{{VLANAny, 0, true}, {VLANAny, 7, true}, {VLANUntagged, 0, true}, {VLANUntagged, 7, false}, {7, 7, true}, {7, 0, false}} {
		if got := c.policy.Accepts(c.vlan); got != c.want {
			t.Errorf("%v accepts VLAN %d: %t", c.policy, c.vlan, got)
		}
	}
}

// An impossible configuration is refused before the kernel is asked.
func TestConfigErrors(t *testing.T) {
	fine := Config{MAC: [6]byte{2}}
	group, small, tagged, remote := fine, fine, fine, fine
	group.MAC[0] = 1
	small.MTU = MinMTU - 1
	tagged.VLAN = MaxVLAN + 1
	remote.UDP, remote.Addrs = true, []netip.Addr{netip.MustParseAddr("224.0.0.1")}
	for name, c := range map[string]struct {
		cfg    Config
		queues int
	}{
		"no MAC": {Config{}, 1}, "group": {group, 1}, "small": {small, 1}, "tagged": {tagged, 1},
		"no queues": {fine, 0}, "queues": {fine, MaxReceiveQueues + 1}, "address": {remote, 1},
	} {
		p, err := Load(c.cfg, c.queues)
		if !errors.Is(err, ErrConfig) || !errors.Is(err, syscall.EINVAL) || p != nil {
			t.Errorf("%s: %v, want ErrConfig and EINVAL", name, err)
		}
	}
}

// The kernel says EPERM and no more: the cause that is named is the one that is there.
func TestRemedies(t *testing.T) {
	const (
		all   = ^uint64(0)
		admin = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_ADMIN
		limit = 64 << 10
		none  = uint64(unix.RLIM_INFINITY)
	)
	for name, c := range map[string]struct {
		p         privileges
		want, not string
	}{
		"nothing":                      {privileges{0, limit, true}, "missing CAP_BPF and CAP_PERFMON and CAP_NET_ADMIN", "MEMLOCK"},
		"CAP_SYS_ADMIN for two":        {privileges{admin, limit, false}, "user namespace", "CAP_"},
		"CAP_SYS_ADMIN, and the limit": {privileges{admin, limit, true}, "RLIMIT_MEMLOCK is 64 KiB, and before Linux 5.11", "CAP_"},
		"a limit that counts":          {privileges{all, limit, true}, "`ulimit -l unlimited`", "namespace"},
		"no limit":                     {privileges{all, none, true}, "user namespace", "MEMLOCK"},
		"a limit that does not count":  {privileges{all, limit, false}, "user namespace", "MEMLOCK"},
	} {
		if got := c.p.remedy(); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q, want %q and nothing of %q", name, got, c.want, c.not)
		}
	}
	hinted := fmt.Errorf("map create: %w (MEMLOCK may be too low)", unix.EPERM) // as the library has it
	if err := explain("loading", hinted); !errors.Is(err, unix.EPERM) || strings.Contains(err.Error(), "may be too low") {
		t.Errorf("%v, want EPERM without the library's guess", err)
	}
	// The verifier says EACCES for lack of CAP_PERFMON, and for much else.
	verifier := &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"invalid zero-sized read"}}
	for want, p := range map[string]privileges{"the verifier of this kernel refuses": {all, none, false}, "missing CAP_BPF and CAP_PERFMON": {1 << unix.CAP_NET_ADMIN, none, false}} {
		if err := p.explain("loading", verifier); !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "zero-sized read") || strings.Contains(err.Error(), "namespace") {
			t.Errorf("%v, want %q and what the verifier says", err, want)
		}
	}
}
