// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
)

func TestPolicyNames(t *testing.T) {
	for policy, want := range map[VLANPolicy]string{VLANAny: "any", VLANUntagged: "untagged", 9: "VLANPolicy(9)"} {
		if got := policy.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An impossible configuration is refused before the kernel is asked.
func TestConfigErrors(t *testing.T) {
	fine := Config{MAC: [6]byte{2}}
	group, small, tagged, remote := fine, fine, fine, fine
	group.MAC[0] = 1
	small.MTU = MinMTU - 1
	tagged.VLAN = VLANUntagged + 1
	remote.UDP, remote.Addrs = true, []netip.Addr{netip.MustParseAddr("224.0.0.1")}
	for name, c := range map[string]struct {
		cfg    Config
		queues int
	}{
		"no MAC": {Config{}, 1}, "group": {group, 1}, "small": {small, 1}, "tagged": {tagged, 1},
		"no queues": {fine, 0}, "queues": {fine, MaxQueues + 1}, "address": {remote, 1},
	} {
		p, err := Load(c.cfg, c.queues)
		if !errors.Is(err, ErrConfig) || !errors.Is(err, syscall.EINVAL) || p != nil {
			t.Errorf("%s: %v, want ErrConfig and EINVAL", name, err)
		}
	}
}
