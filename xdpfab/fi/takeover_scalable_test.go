// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// scalableGuest is a guest's scalable endpoint with two receive contexts and an open
// transmit context.
func scalableGuest(t *testing.T, g *xdpfab.Domain, number int) (s *fi.ScalableEndpoint, tx *fi.Endpoint) {
	t.Helper()
	av, err := g.NewAddressVector()
	if err == nil {
		s, err = g.NewScalableEndpoint(fi.ScalableAttr{Number: number, TXContexts: 2, RXContexts: 2})
	}
	if err != nil {
		t.Fatal(err)
	}
	cq, err := g.NewCompletionQueue(fi.CQAttr{})
	if err = errors.Join(err, s.Bind(av)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		rx, err := s.ReceiveContext(i)
		if err == nil {
			err = rx.Enable()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tx, err = s.TransmitContext(1, fi.EndpointAttr{Size: 64})
	if err == nil {
		err = errors.Join(tx.Bind(cq, 0), tx.Enable())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, tx
}

// A program with transmit contexts, whose numbers are not among those of their scalable
// endpoint, moves as any other does. Its contexts go on, and can be made again.
func TestTakeoverScalable(t *testing.T) {
	s, b := newSuccession(t)
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	if _, err := g.NewRegion("own", 4096); err != nil {
		t.Fatal(err)
	}
	sep, tx := scalableGuest(t, g, 20)
	other, otherTx := scalableGuest(t, g, fi.AnyNumber)
	dest, err := sep.AV().Insert(t.Context(), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	own := make([]*load, 2)
	for i := range own {
		p, err := b.Dial(t.Context(), g.Name(uint16(20+i)))
		if err != nil {
			t.Fatal(err)
		}
		own[i] = &load{t: t}
		word, err := xdpfab.Word[uint64](t.Context(), p, "own", uint64(8*i))
		if err != nil {
			t.Fatal(err)
		}
		own[i].loop("add by a receive context", func(n uint64) error {
			sum, err := word.Add(t.Context(), 1)
			if err == nil && sum != n+1 {
				err = errors.New("another sum")
			}
			return err
		})
	}
	for range 3 {
		for _, l := range own {
			l.goOn()
		}
		s.next()
		region, err := tx.Lookup(t.Context(), dest, "words")
		if err != nil || region.Size == 0 {
			t.Fatalf("by a transmit context after a takeover: %+v, %v", region, err)
		}
	}
	for _, l := range own {
		l.goOn()
		l.stop.Store(true)
		<-l.runs[0].done
	}
	if err := errors.Join(tx.Close(), otherTx.Close()); err != nil {
		t.Fatal(err)
	}
	if tx, err = sep.TransmitContext(1, fi.EndpointAttr{Size: 64}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.Close(), other.RX()[0].Close(), other.RX()[1].Close(), other.Close()); err != nil {
		t.Error(err)
	}
}

// What would have no place at the next host is refused: numbers of a scalable endpoint
// are not given back while it has contexts, and a receive context has one of its numbers.
func TestOrphanContexts(t *testing.T) {
	s, _ := newSuccession(t)
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	scalableGuest(t, g, 20)
	first := uint16(20)
	if err := g.Node().Dev.(*guestpkg.Attached).Call(t.Context(), share.CallUnblock, first, nil); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("numbers of open contexts given back: %v, want ErrBusy", err)
	}
	unrestored := share.Endpoint{Number: fi.AnyNumber, Highest: true, Block: &first, Origin: node.NewLife()}
	if err := g.Node().Dev.(*guestpkg.Attached).Call(context.Background(), share.CallEndpoint, unrestored, nil); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("a receive context beyond the numbers: %v, want ErrNotImplemented", err)
	}
	s.next()
}
