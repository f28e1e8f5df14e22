// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A user ID takes the place of the address in the completions of what a peer does, over
// every wire, and nowhere else.
func TestUserID(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		at := newTarget(t, b.server, 16)
		av, err := b.server.NewAddressVector()
		b.ok(err)
		target, err := b.server.NewEndpoint(fi.EndpointAttr{Number: 8})
		b.ok(err)
		cq, err := b.server.NewCompletionQueue(fi.CQAttr{})
		b.ok(errors.Join(err, target.Bind(av, 0), target.Bind(cq, fi.BindTransmit), target.Bind(at.cq, fi.BindRecv), target.Enable()))
		ep, done := b.endpoint(fi.EndpointAttr{})
		dest, err := b.av.Insert(ctx(t), target.Name())
		b.ok(err)
		peer, err := av.Insert(ctx(t), ep.Name())
		b.ok(err)
		source := func() fi.Address {
			t.Helper()
			m := b.add(0)
			m.Dest = dest
			b.ok(ep.Atomic(m, fi.FlagRemoteCQData))
			if c := b.take(done, 1)[0]; c.Err != nil {
				t.Fatal(c.Err)
			}
			return at.next(t).Source
		}
		if got := source(); got != peer {
			t.Errorf("source %d, want %d", got, peer)
		}
		for _, id := range []fi.Address{4711, 0, fi.NoAddress - 1} {
			b.ok(av.SetUserID(peer, id))
			if got := source(); got != id {
				t.Errorf("source %d, want the user ID %d", got, id)
			}
		}
		if name, err := av.Lookup(peer); name != ep.Name() || err != nil {
			t.Errorf("address %d: %s, %v: want it unchanged", peer, name, err)
		}
		for _, a := range []fi.Address{peer + 1, 1 << 25} {
			if err := av.SetUserID(a, 1); !errors.Is(err, fi.ErrUnknownPeer) {
				t.Errorf("user ID of address %#x: %v", a, err)
			}
		}
		b.ok(av.Remove(peer))
		if err := av.SetUserID(peer, 1); !errors.Is(err, fi.ErrUnknownPeer) {
			t.Errorf("user ID of a removed address: %v", err)
		}
		if got := source(); got != fi.NoAddress {
			t.Errorf("source %d after its removal", got)
		}
	})
}
