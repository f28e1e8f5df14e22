// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// With thousands of calls waiting for a peer that does not answer, calls to another
// go through, and the callers beyond the share wait without using the processor.
func TestDeadPeerLeavesRoom(t *testing.T) {
	for name, m := range map[string]ProgressMode{"auto": ProgressAuto, "manual": ProgressManual} {
		t.Run(name, func(t *testing.T) {
			attr := DomainAttr{Progress: m, GiveUp: time.Hour, IdleRetire: 3 * time.Hour}
			a, b, _ := pipe(t, attr, DomainAttr{})
			defer b.CloseAll()
			defer a.CloseAll()
			live, err := a.Dial(context.Background(), b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			word, err := Word[uint64](context.Background(), live, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			dead := nobody(t, a)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var callers sync.WaitGroup
			const n = 4200
			for range n {
				callers.Go(func() {
					if err := dead.Do(ctx, loadOf(1)); !errors.Is(err, context.Canceled) {
						t.Errorf("%v, want the context's error", err)
					}
				})
			}
			const share = 4096 / 3
			for granted, waiting := dead.Allotment.Calls(); granted != share || waiting != n-share; granted, waiting = dead.Allotment.Calls() {
				time.Sleep(time.Millisecond)
			}
			testnet.Within(t, "calls to the live peer", func() {
				for i := range uint64(1000) {
					if v, err := word.Add(context.Background(), 1); err != nil || v != i+1 {
						t.Errorf("%d, %v, want %d", v, err, i+1)
						return
					}
				}
			})
			cancel()
			testnet.Within(t, "calls to the dead peer", callers.Wait)
			testnet.Within(t, "close", func() { _ = dead.Close() })
			if used, line := a.dialer.room.Calls(); used != 0 || line != 0 {
				t.Errorf("%d entries granted and %d queues at the end", used, line)
			}
		})
	}
}

// nobody returns a peer at whose address no node answers.
func nobody(t *testing.T, d *Domain) *calls.Peer {
	t.Helper()
	ep, err := d.dialEndpoint()
	if err != nil {
		t.Fatal(err)
	}
	addr := wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 0x77}}
	if OverSockets {
		addr = wire.Addr{IP: netip.MustParseAddr("127.127.0.77")}
	}
	link, err := d.node.Dev.Link(context.Background(), addr)
	if err != nil {
		t.Fatal(err)
	}
	use, err := ep.dial(addr, link)
	if err != nil {
		t.Fatal(err)
	}
	return ep.callPeer(use, addr.String())
}

// loadOf reads eight bytes at the beginning of a region.
func loadOf(key uint64) calls.Call {
	return calls.Call{Verb: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(atomic.Uint64), Count: 1, Key: key, Result: make([]byte, 8)}
}

// allotment returns the part of the room of a peer that was dialled at an address.
func allotment(d *Domain, addr string) *calls.Allotment {
	d.dialer.mu.Lock()
	defer d.dialer.mu.Unlock()
	for a, n := range d.dialer.names {
		if a.String() == addr {
			return n.allotment
		}
	}
	return nil
}
