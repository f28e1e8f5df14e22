// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCapabilities(t *testing.T) {
	have := func(set uint64) (names string) {
		for _, c := range capabilitiesOf(set) {
			if c.Have {
				names += " " + c.Name
			}
		}
		return names
	}
	for set, want := range map[uint64]string{
		0: "", 1 << unix.CAP_NET_RAW: " CAP_NET_RAW", 1 << unix.CAP_SYS_ADMIN: " CAP_BPF CAP_PERFMON", 1 << unix.CAP_BPF: " CAP_BPF",
	} {
		if got := have(set); got != want {
			t.Errorf("%#x: %q, want %q", set, got, want)
		}
	}
}
