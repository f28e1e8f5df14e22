// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// All frames arrive on one queue, as from a NIC that cannot spread them: they come from
// one queue of the peer's, and a veth keeps the number. With Spread both pollers execute
// them all the same, each operation once.
func TestVethSpread(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{Queues: 2})
	b := openAt(t, pair.B, pair.B.IfName, fi.DomainAttr{Attach: fi.AttachNever, Spread: true})
	a := openAt(t, pair.A, pair.A.IfName, fi.DomainAttr{Attach: fi.AttachNever})
	ctx, cancel := context.WithTimeout(context.Background(), testnet.Patience)
	defer cancel()
	if _, err := b.NewRegion("r", 4096); err != nil {
		t.Fatal(err)
	}
	const sessions, adds = 4, 200
	var group sync.WaitGroup
	for number := range sessions {
		ep, err := b.NewEndpoint(fi.EndpointAttr{Number: number})
		if err == nil {
			err = ep.Enable()
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.Dial(ctx, b.Name(uint16(number))) // all from the endpoint that dials, on queue 0
		if err != nil {
			t.Fatal(err)
		}
		w, err := xdpfab.Word[uint64](ctx, p, "r", 0)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for range adds {
				if _, err := w.Add(ctx, 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	p, err := a.Dial(ctx, b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx, p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Load(ctx); n != sessions*adds || err != nil {
		t.Errorf("sum %d, %v, want %d", n, err, sessions*adds)
	}
	for q, st := range b.Node().Steppers {
		st.Call(st.Eng.Publish)
		c := st.Eng.Counters()
		c.Each(func(name string, n uint64) {
			if name == "sessions_accepted" && n < sessions/2 {
				t.Errorf("queue %d has accepted %d sessions, want %d", q, n, sessions/2)
			}
		})
	}
}
