// SPDX-License-Identifier: Apache-2.0

package fi_test

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
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// With thousands of calls waiting for a peer that does not answer, calls to another
// go through, and the callers beyond the share wait without using the processor.
func TestDeadPeerLeavesRoom(t *testing.T) {
	for name, m := range map[string]fi.ProgressMode{"auto": fi.ProgressAuto, "manual": fi.ProgressManual} {
		t.Run(name, func(t *testing.T) {
			attr := fi.DomainAttr{Progress: m, GiveUp: time.Hour, IdleRetire: 3 * time.Hour}
			a, b, _ := servedPipe(t, attr, fi.DomainAttr{})
			defer b.CloseAll()
			defer a.CloseAll()
			live, err := a.Dial(context.Background(), b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			word, err := xdpfab.Word[uint64](context.Background(), live, "r", 0)
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
			if used, line := a.Dialer().Calling(); used != 0 || line != 0 {
				t.Errorf("%d entries granted and %d queues at the end", used, line)
			}
		})
	}
}

// nobody returns a peer at whose address no node answers.
func nobody(t *testing.T, d *xdpfab.Domain) *calls.Peer {
	t.Helper()
	addr := wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 0x77}}
	if fi.OverSockets {
		addr = wire.Addr{IP: netip.MustParseAddr("127.127.0.77")}
	}
	p, err := d.PeerAt(addr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// loadOf reads eight bytes at the beginning of a region.
func loadOf(key uint64) calls.Call {
	return calls.Call{Verb: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(atomic.Uint64), Count: 1, Key: key, Result: make([]byte, 8)}
}
