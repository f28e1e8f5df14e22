// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// programOn returns the program that an interface runs in native mode, 0 for none.
func programOn(t *testing.T, ifindex int) uint32 {
	t.Helper()
	on, err := attachedTo(ifindex)
	if err != nil {
		t.Fatal(err)
	}
	return on[Native]
}

// A pinned program stays when its owner closes it. The next owner puts its own in place
// with the same maps, and ends it.
func TestPinAndAdopt(t *testing.T) {
	folder := testnet.BPFFS(t)
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		ifindex := pair.B.IfIndex
		cfg.Execute = true
		first := mustLoad(t, cfg, 1)
		if err := first.Pin(folder); !errors.Is(err, ErrConfig) || Pinned(folder) {
			t.Errorf("pinned before it is attached: %v", err)
		}
		if err := first.Attach(ifindex, Native); err != nil {
			t.Fatal(err)
		}
		if _, err := Adopt(folder, cfg, 1, ifindex); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("adopted before it is pinned: %v", err)
		}
		if err := first.SetExecutor(echoer(t)); err != nil {
			t.Fatal(err)
		}
		if err := first.Pin(folder); err != nil || !Pinned(folder) {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if id := programOn(t, ifindex); id != first.ID() {
			t.Fatalf("program %d, want %d to stay", id, first.ID())
		}
		if _, err := Adopt(folder, cfg, 2, ifindex); !errors.Is(err, ErrConfig) {
			t.Errorf("adopted with another number of queues: %v", err)
		}
		if _, err := Adopt(folder, cfg, 1, loopback); !errors.Is(err, ErrOtherInterface) {
			t.Errorf("adopted for another interface: %v", err)
		}
		if unused, err := Adopt(folder, cfg, 1, ifindex); err != nil {
			t.Error(err)
		} else if err := unused.Close(); err != nil || !errors.Is(unused.Replace(), ErrClosed) {
			t.Errorf("closing one that was not put in place: %v", err)
		}
		if id := programOn(t, ifindex); id != first.ID() {
			t.Fatalf("program %d, want %d after what was refused", id, first.ID())
		}
		if err := mustLoad(t, cfg, 1).Replace(); !errors.Is(err, ErrConfig) {
			t.Errorf("put one in place that was not adopted: %v", err)
		}
		checkAdopted(t, folder, cfg, ifindex)
	})
}

func checkAdopted(t *testing.T, folder string, cfg Config, ifindex int) {
	t.Helper()
	next, err := Adopt(folder, cfg, 1, ifindex)
	if err != nil {
		t.Fatal(err)
	}
	if id := programOn(t, ifindex); id == next.ID() || next.Mode() != Detached {
		t.Errorf("program %d in %v mode, want the former one", id, next.Mode())
	}
	if err := next.Replace(); err != nil {
		t.Fatal(err)
	}
	if id := programOn(t, ifindex); id != next.ID() || next.Mode() != Native {
		t.Errorf("program %d in %v mode, want %d", id, next.Mode(), next.ID())
	}
	var executor uint32
	if err := next.objects.Executors.Lookup(uint32(0), &executor); err != nil || executor == 0 {
		t.Errorf("executor %d, %v: want the one before", executor, err)
	}
	if len(next.addrs) != len(cfg.Addrs) {
		t.Errorf("addresses %v, want %v", next.addrs, cfg.Addrs)
	}
	if err := next.SetAddrs(nil); err != nil {
		t.Error(err)
	}
	var a address
	var is uint8
	if next.objects.Served.Iterate().Next(&a, &is) {
		t.Errorf("address %v is left", a)
	}
	if err := next.Unpin(); err != nil || Pinned(folder) {
		t.Errorf("unpin: %v; pinned %t", err, Pinned(folder))
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if id := programOn(t, ifindex); id != 0 {
		t.Errorf("program %d is left", id)
	}
}

// What a dead process left can be ended; so can a link whose program was
// detached, which is not adopted.
func TestDetachPinned(t *testing.T) {
	folder := testnet.BPFFS(t)
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		if err := DetachPinned(folder); err != nil {
			t.Errorf("nothing there: %v", err)
		}
		for _, detached := range []bool{false, true} {
			p := mustLoad(t, cfg, 1)
			if err := p.Attach(pair.B.IfIndex, Native); err != nil {
				t.Fatal(err)
			}
			if err := p.Pin(folder); err != nil {
				t.Fatal(err)
			}
			if detached {
				if err := p.link.Detach(); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
					t.Fatal(err)
				}
				if _, err := Adopt(folder, cfg, 1, pair.B.IfIndex); !errors.Is(err, ErrEnded) {
					t.Errorf("adopted what is detached: %v", err)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if err := DetachPinned(folder); err != nil || Pinned(folder) {
				t.Errorf("%v; pinned %t", err, Pinned(folder))
			}
			if id := programOn(t, pair.B.IfIndex); id != 0 {
				t.Errorf("program %d is left", id)
			}
			for name := range p.shared() {
				if err := os.Remove(folder + "/" + name); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
