// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// jumbo is the configuration of an interface whose packets take several buffers.
func jumbo() Config {
	c := testConfig()
	c.Frags, c.MTU = true, 9000
	return c
}

// skipWithoutFrags skips a test of the program that takes packets in fragments where it
// is not used, for want of sockets that get them. From 5.18 on kernels have such
// programs, but the verifier of 6.1 refuses this one.
func skipWithoutFrags(t *testing.T) {
	t.Helper()
	if v := kernel.MultiBuffer; testnet.KernelBefore(t, v.Major, v.Minor) {
		t.Skipf("this kernel has no packets of several AF_XDP buffers; it takes %v", v)
	}
}

// A packet in fragments is judged as if it lay in one buffer, however short its first
// fragment is: of some drivers it is empty.
func TestFragsAgainstReference(t *testing.T) {
	skipWithoutFrags(t)
	cfg := jumbo()
	p := mustLoad(t, cfg, 1)
	setSocket(t, p, 0, testLane)
	cuts := divides(t, p)
	rng := rand.New(rand.NewPCG(3, 4))
	var seen [NumReasons]int
	split := 0
	for range 2000 {
		packet := changed(rng, cfg.MTU)
		at := &xdpMD{DataEnd: uint32(len(packet))}
		if at.DataEnd > maxTestRun {
			at = nil // the kernel makes fragments of what does not fit one page
			split++
		} else if cuts && rng.IntN(2) == 0 {
			at.DataEnd = uint32(minTestRun + rng.IntN(len(packet)-minTestRun+1))
			split++
		}
		seen[compare(t, p, &cfg, packet, at)]++
		if t.Failed() {
			return
		}
	}
	if split == 0 || seen[Redirect] == 0 || seen[DropLong] == 0 {
		t.Errorf("%d packets in fragments, by reason %v: this test lost its reach", split, seen)
	}
	t.Logf("%d in fragments, the first shorter than a page: %v; by reason: %v", split, cuts, seen)
}

// divides reports whether test runs let the caller say how long the first fragment is.
func divides(t *testing.T, p *Program) bool {
	t.Helper()
	_, err := p.objects.XdpfabSteer.Run(&ebpf.RunOptions{Data: make([]byte, 100), Context: &xdpMD{DataEnd: 20}})
	if err != nil && !errors.Is(err, unix.EINVAL) {
		t.Fatal(err)
	}
	return err == nil
}
