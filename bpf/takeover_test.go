// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"maps"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A program that is left runs on behind Close until another one is in its place, over the
// same maps, which can be left in turn. It ends with the last descriptor, or with a Close
// behind Stay.
func TestTakeOver(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		ifindex := pair.B.IfIndex
		cfg.Execute = true
		first := mustLoad(t, cfg, 1)
		if _, err := first.Leave(); !errors.Is(err, errDetached) {
			t.Errorf("left before it is attached: %v", err)
		}
		if err := first.Attach(ifindex, Native); err != nil {
			t.Fatal(err)
		}
		if err := first.Replace(); !errors.Is(err, ErrConfig) {
			t.Errorf("one that was attached replaces another: %v", err)
		}
		if err := first.SetExecutor(echoer(t)); err != nil {
			t.Fatal(err)
		}
		files, err := first.Leave()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(first.Unpin(), first.Close()); err != nil {
			t.Error(err)
		}
		if _, err := first.Leave(); !errors.Is(err, ErrClosed) {
			t.Errorf("left when it is closed: %v", err)
		}
		runs := func(id uint32) {
			t.Helper()
			if is := programOn(t, ifindex); is != id {
				t.Errorf("program %d, want %d", is, id)
			}
		}
		runs(first.ID())
		few, wrong := maps.Clone(files), maps.Clone(files)
		delete(few, steerMapSockets)
		wrong[pinnedLink] = 0
		if _, err := TakeOver(files, "", cfg, 1, loopback); !errors.Is(err, ErrOtherInterface) {
			t.Errorf("another interface: %v", err)
		}
		for _, bad := range []Files{few, {}} {
			if _, err := TakeOver(bad, "", cfg, 1, ifindex); !errors.Is(err, ErrConfig) {
				t.Errorf("taken over from %v: %v", bad, err)
			}
		}
		if _, err := TakeOver(files, "", cfg, 2, ifindex); !errors.Is(err, ErrConfig) {
			t.Errorf("another number of queues, with an executor: %v", err)
		}
		if _, err := TakeOver(wrong, "", cfg, 1, ifindex); err == nil {
			t.Error("something else than a link")
		}
		runs(first.ID())
		takeOver := func(queues int) *Program {
			t.Helper()
			p, err := TakeOver(files, "", cfg, queues, ifindex)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		last := first.ID()
		for range 2 { // closed without Stay it can be taken over again
			next := takeOver(1)
			runs(last)
			if err := next.Attach(ifindex, Native); !errors.Is(err, ErrAttached) {
				t.Errorf("attached, too: %v", err)
			}
			var executor uint32
			if err := next.objects.Executors.Lookup(uint32(0), &executor); err != nil || executor == 0 {
				t.Errorf("executor %d, %v: want the one before", executor, err)
			}
			if err := next.Replace(); err != nil || next.Mode() != Native {
				t.Fatalf("%v mode, %v", next.Mode(), err)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
			last = next.ID()
			runs(last)
		}
		given := takeOver(1) // it never comes to Replace
		if err := errors.Join(given.SetExecutor(nil), given.Close()); err != nil {
			t.Error(err)
		}
		runs(last)
		wide := takeOver(2) // without an executor
		if err := wide.Replace(); err != nil {
			t.Fatal(err)
		}
		runs(wide.ID())
		wide.Stay()
		if err := wide.Close(); err != nil {
			t.Error(err)
		}
		runs(0)
		files.Close()
	})
}

// A program that is taken over by a link that was detached is attached anew, over
// the same maps. It ends with the last descriptor.
func TestTakeOverDetached(t *testing.T) {
	folder := testnet.BPFFS(t)
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		ifindex := pair.B.IfIndex
		cfg.Execute = true
		first := mustLoad(t, cfg, 1)
		err := errors.Join(first.Attach(ifindex, Native), first.SetExecutor(echoer(t)), first.Pin(folder))
		if err != nil {
			t.Fatal(err)
		}
		files, err := first.Leave()
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		if err := errors.Join(first.link.Detach(), first.Close()); err != nil {
			t.Fatal(err)
		}
		next, err := TakeOver(files, folder, cfg, 1, ifindex)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Replace(); !errors.Is(err, ErrConfig) {
			t.Errorf("it replaces nothing: %v", err)
		}
		if err := errors.Join(next.Attach(ifindex, Native), next.Replace()); err != nil || next.Mode() != Native {
			t.Fatalf("%v mode, %v", next.Mode(), err)
		}
		if err := next.Close(); err != nil || programOn(t, ifindex) != next.ID() {
			t.Errorf("program %d, %v: want the one that is pinned", programOn(t, ifindex), err)
		}
		if next, err = TakeOver(files, folder, cfg, 1, ifindex); err != nil { // by the new link
			t.Fatal(err)
		}
		if err := next.Replace(); err != nil || next.Mode() != Native {
			t.Fatalf("%v mode, %v", next.Mode(), err)
		}
		next.Stay()
		if err := next.Close(); err != nil || programOn(t, ifindex) != next.ID() {
			t.Errorf("program %d, %v: want the one that is pinned", programOn(t, ifindex), err)
		}
		if last, err := Adopt(folder, cfg, 1, ifindex); err != nil {
			t.Error(err)
		} else if err := errors.Join(last.Replace(), last.Unpin(), last.Close()); err != nil || programOn(t, ifindex) != 0 {
			t.Errorf("program %d is left, %v", programOn(t, ifindex), err)
		}
		alone := mustLoad(t, cfg, 1)
		if err := alone.Attach(ifindex, Native); err != nil {
			t.Fatal(err)
		}
		if files, err = alone.Leave(); err != nil {
			t.Fatal(err)
		}
		if err := alone.Close(); err != nil || programOn(t, ifindex) != alone.ID() {
			t.Errorf("program %d, %v: want the one that is left", programOn(t, ifindex), err)
		}
		if files.Close(); programOn(t, ifindex) != 0 {
			t.Errorf("program %d is left, and no process has it", programOn(t, ifindex))
		}
	})
}

// A program that runs in generic mode is replaced by one that does, too.
func TestTakeOverGeneric(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		ifindex := pair.B.IfIndex
		first := mustLoad(t, cfg, 1)
		if err := first.Attach(ifindex, Generic); err != nil {
			t.Fatal(err)
		}
		files, err := first.Leave()
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		next, err := TakeOver(files, "", cfg, 1, ifindex)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Replace(); err != nil || next.Mode() != Generic {
			t.Errorf("%v mode, %v", next.Mode(), err)
		}
		next.Stay()
		if err := errors.Join(next.Close(), first.Close()); err != nil {
			t.Error(err)
		}
	})
}

// The kernel keeps programs that take packets in fragments apart from others: the two
// share no map of executors. So a program of the other kind gets maps of its own, unless
// there is an executor.
func TestTakeOverFrags(t *testing.T) {
	skipWithoutFrags(t)
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		ifindex := pair.B.IfIndex
		cfg.Execute = true
		other := cfg
		other.Frags = true
		first := mustLoad(t, other, 1)
		if err := errors.Join(first.Attach(ifindex, Native), first.SetExecutor(echoerWith(t, unix.BPF_F_XDP_HAS_FRAGS))); err != nil {
			t.Fatal(err)
		}
		files, err := first.Leave()
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		if _, err := TakeOver(files, "", cfg, 1, ifindex); !errors.Is(err, ErrConfig) {
			t.Errorf("with an executor: %v", err)
		}
		if err := first.SetExecutor(nil); err != nil {
			t.Fatal(err)
		}
		next, err := TakeOver(files, "", cfg, 1, ifindex)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Replace(); err != nil || programOn(t, ifindex) != next.ID() {
			t.Errorf("program %d, %v: want the next one", programOn(t, ifindex), err)
		}
		next.Stay()
		if err := errors.Join(next.Close(), first.Close()); err != nil {
			t.Error(err)
		}
	})
}
