// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// What a kind of NIC changes for its machine and its tests.
func TestNICs(t *testing.T) {
	for _, n := range NICs {
		text := strings.Join(n.env(), "\n")
		if words := strings.Fields(n.Expect); len(words) != 2 || !strings.Contains(text, testnet.NICModesEnv+"="+n.Expect) {
			t.Errorf("%s: expects %q, and tells %q", n.Name, n.Expect, text)
		}
		if want := map[bool]string{false: "=eth0 eth1\n", true: "=eth2 eth3\n"}[n.virtual]; !strings.Contains(text, want) {
			t.Errorf("%s: tells %q, want %q", n.Name, text, want)
		}
	}
	var none *NIC
	if none.physical() != nil || none.env() != nil {
		t.Error("a machine without NICs has some")
	}
	const known = "<4>[1.0] WARNING: net/core/dev.c:1879 at generic_xdp_install+0x130/0x1b0, CPU#0: xdpfabd/133"
	warnings := []string{known, "<4>[2.0] WARNING: net/core/dev.c:1 at dev_xdp_install+0x1c9/0x470", "BUG: x"}
	n, err := FindNIC("virtio-offloads")
	if err != nil {
		t.Fatal(err)
	}
	if left := n.foreign(slices.Clone(warnings)); !slices.Equal(left, warnings[1:]) {
		t.Errorf("left over: %q", left)
	}
	if n, _ = FindNIC("virtio"); !slices.Equal(n.foreign(slices.Clone(warnings)), warnings) || !slices.Equal(none.foreign(warnings), warnings) {
		t.Error("a warning is left out for a NIC that it is not known of")
	}
}
