// SPDX-License-Identifier: Apache-2.0

//go:build linux

package feature

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// redirectAll gives every packet of a side's first queue to a socket, by a program
// that accepts packets of several buffers.
func redirectAll(t *testing.T, s *testnet.Side, fd int) {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := m.Put(uint32(0), uint32(fd)); err != nil {
		t.Fatal(err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "Apache-2.0", Flags: unix.BPF_F_XDP_HAS_FRAGS,
		Instructions: asm.Instructions{
			asm.LoadMapPtr(asm.R1, m.FD()), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, xdpPass),
			asm.FnRedirectMap.Call(), asm.Return(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	err = s.Do(func() error {
		l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: s.IfIndex, Flags: link.XDPDriverMode})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
