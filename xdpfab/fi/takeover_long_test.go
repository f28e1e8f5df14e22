// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A takeover in the middle of operations that are longer than a guest's window of shared
// memory interrupts none, nor what is posted behind them.
func TestTakeoverBetweenParts(t *testing.T) {
	s, b := newSuccession(t)
	ctx := t.Context()
	size := reduced(3<<20, 1<<20+8192)
	for _, name := range []string{"long", "sum"} {
		if _, err := b.NewRegion(name, size); err != nil {
			t.Fatal(err)
		}
	}
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	p, err := g.Dial(ctx, b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	region, err := p.Lookup(ctx, "long")
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t}
	data, back := make([]byte, size), make([]byte, size)
	l.loop("transfer", func(i uint64) error {
		for at := 0; at < size; at += 4096 {
			copy(data[at:], bytes.Repeat([]byte{byte(i) + byte(at>>12)}, 4096))
		}
		if err := p.Write(ctx, region, 0, data); err != nil {
			return err
		}
		if err := p.Read(ctx, region, 0, back); err != nil {
			return err
		}
		if !bytes.Equal(back, data) {
			return fmt.Errorf("other bytes come back than were written")
		}
		return nil
	})
	l.adds(p, "sum")
	for range 4 {
		l.goOn()
		s.next()
	}
	l.goOn()
	l.stop.Store(true)
	for _, r := range l.runs {
		<-r.done
	}
	if err := g.CloseAll(); err != nil {
		t.Error(err)
	}
	if err := b.CloseAll(); err != nil {
		t.Error(err)
	}
}
