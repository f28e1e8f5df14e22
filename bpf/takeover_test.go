// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A program that is left runs on behind Close until another one is in its place, which
// can be left in turn. It ends with the last descriptor, or with a Close behind Stay.
func TestTakeOver(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		ifindex := pair.B.IfIndex
		first := mustLoad(t, cfg, 1)
		if _, err := first.Leave(); !errors.Is(err, errDetached) {
			t.Errorf("left before it is attached: %v", err)
		}
		if err := first.Attach(ifindex, Native); err != nil {
			t.Fatal(err)
		}
		link, err := first.Leave()
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		runs := func(p *Program) {
			t.Helper()
			if id := programOn(t, ifindex); id != p.ID() {
				t.Errorf("program %d, want %d", id, p.ID())
			}
		}
		runs(first)
		next := mustLoad(t, cfg, 2)
		if err := next.TakeOver(link, loopback); !errors.Is(err, ErrStray) {
			t.Errorf("another interface: %v", err)
		}
		if err := next.TakeOver(-1, ifindex); !errors.Is(err, unix.EBADF) {
			t.Errorf("no descriptor: %v", err)
		}
		if err := next.TakeOver(0, ifindex); err == nil {
			t.Error("something else than a link")
		}
		runs(first)
		for range 2 { // closed without Stay it can be taken over again
			if err := next.TakeOver(link, ifindex); err != nil || next.Mode() != Native {
				t.Fatalf("%v mode, %v", next.Mode(), err)
			}
			runs(next)
			if err := next.TakeOver(link, ifindex); !errors.Is(err, ErrAttached) {
				t.Errorf("twice: %v", err)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
			runs(next)
			next = mustLoad(t, cfg, 2)
		}
		if err := next.TakeOver(link, ifindex); err != nil {
			t.Fatal(err)
		}
		next.Stay()
		if err := next.Close(); err != nil || programOn(t, ifindex) != 0 {
			t.Errorf("program %d is left, %v", programOn(t, ifindex), err)
		}
		last := mustLoad(t, cfg, 1)
		if err := last.TakeOver(link, ifindex); !errors.Is(err, ErrEnded) {
			t.Errorf("in the place of one that was detached: %v", err)
		}
		if err := unix.Close(link); err != nil {
			t.Error(err)
		}
		if err := last.Attach(ifindex, Native); err != nil {
			t.Fatal(err)
		}
		if link, err = last.Leave(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(last.Close(), unix.Close(link)); err != nil || programOn(t, ifindex) != 0 {
			t.Errorf("program %d is left with nobody who has it, %v", programOn(t, ifindex), err)
		}
	})
}

// A program that runs in generic mode is replaced by one that may.
func TestTakeOverGeneric(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		ifindex := pair.B.IfIndex
		cfg.AllowGeneric = true
		first := mustLoad(t, cfg, 1)
		if err := first.Attach(ifindex, Generic); err != nil {
			t.Fatal(err)
		}
		link, err := first.Leave()
		if err != nil {
			t.Fatal(err)
		}
		next := mustLoad(t, cfg, 1)
		cfg.AllowGeneric = false
		if err := mustLoad(t, cfg, 1).TakeOver(link, ifindex); !errors.Is(err, ErrNoNative) {
			t.Errorf("one that may not: %v", err)
		}
		if err := next.TakeOver(link, ifindex); err != nil || next.Mode() != Generic {
			t.Errorf("%v mode, %v", next.Mode(), err)
		}
		next.Stay()
		if err := errors.Join(next.Close(), first.Close(), unix.Close(link)); err != nil {
			t.Error(err)
		}
	})
}
