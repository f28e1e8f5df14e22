// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

const xdpTX = 3

// echoer is an executor that sends every packet back.
func echoer(t *testing.T) *ebpf.Program { return echoerWith(t, 0) }

// echoerWith is echoer with flags of the kernel's.
func echoerWith(t *testing.T, flags uint32) *ebpf.Program {
	t.Helper()
	testnet.Require(t)
	x, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, AttachType: ebpf.AttachXDP, License: "GPL", Flags: flags,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpTX), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// The executor sees requests, acks and probes that are well formed, and nothing else;
// without one the frames go to their sockets.
func TestSetExecutor(t *testing.T) {
	x := echoer(t)
	p := mustLoad(t, Config{MAC: ourMAC, VLAN: VLANAny, UDP: true, Execute: true}, 1)
	setSocket(t, p, 0, testLane)
	if err := p.SetAddrs(testConfig().Addrs); err != nil {
		t.Fatal(err)
	}
	action := func(packet []byte) uint32 {
		t.Helper()
		n, err := p.objects.XdpfabSteer.Run(&ebpf.RunOptions{Data: packet, DataOut: make([]byte, 2048)})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, with := range []bool{false, true, false} {
		set := x
		if !with {
			set = nil
		}
		if err := p.SetExecutor(set); err != nil {
			t.Fatal(err)
		}
		for typ := byte(1); typ < 16; typ++ {
			want := uint32(xdpRedirect)
			if with && (typ == 3 || typ == 5 || typ == 8) {
				want = xdpTX
			}
			for _, k := range kinds {
				if got := action(k.wrap(fab(typ, 46))); got != want {
					t.Errorf("with an executor: %t; %s, type %d: verdict %d, want %d", with, k.name, typ, got, want)
				}
			}
		}
		if got := action(rawPacket(fab(3, 45))); got != xdpDrop {
			t.Errorf("a short frame: verdict %d", got)
		}
	}
	if sockets, counters := p.Shared(); sockets.MaxEntries() != Lanes || counters.MaxEntries() != uint32(NumReasons) {
		t.Errorf("%v, %v", sockets, counters)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.SetExecutor(x); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := mustLoad(t, Config{MAC: ourMAC}, 1).SetExecutor(x); !errors.Is(err, ErrConfig) {
		t.Errorf("without Config.Execute: %v", err)
	}
}
