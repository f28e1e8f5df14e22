// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A program that loses its conversation with a host that goes on gets its kept regions
// back by itself, in the sessions that peers have; the regions that are not kept are
// served anew. What it closes in between is withdrawn.
func TestKeptRejoins(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	dial := hostingOf(t, a, mayKeep)
	gate := make(chan struct{}, 1) // has one element while the program may come back
	g := guestBy(t, dial, fi.DomainAttr{}, func(ctx context.Context) (*share.Talk, error) {
		select {
		case <-gate:
			return dial(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	r, err := g.NewRegion("mine", 4096)
	if err == nil {
		err = g.Keep(r)
	}
	second, err2 := g.NewRegion("second", 4096)
	if err2 == nil {
		err2 = g.Keep(second)
	}
	passing, err3 := g.NewRegion("passing", 4096)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	serveAt(t, g, 7)
	p, err := b.Dial(t.Context(), g.Name(7))
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t}
	l.adds(p, "mine")
	l.goOn()
	back := func() bool { return a.Hosting().Kept()[0].InUse }
	for range 2 {
		g.Node().Dev.(*guestpkg.Attached).EndTalk()
		untilLeft(t, a)
		l.goOn()
		gate <- struct{}{}
		testnet.Eventually(t, "the region is taken back", back)
		l.goOn()
	}
	testnet.Eventually(t, "the other region is served", func() bool {
		remote, err := p.Lookup(t.Context(), passing.Name())
		return err == nil && p.Read(t.Context(), remote, 0, make([]byte, 8)) == nil
	})
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	gate <- struct{}{}
	testnet.Eventually(t, "only the other region is kept", func() bool {
		list := a.Hosting().Kept()
		return len(list) == 1 && list[0].Name == "mine" && list[0].InUse
	})
	l.goOn()
	l.stop.Store(true)
	<-l.runs[0].done
	own, err := r.Uint64(0)
	if err != nil || own.Load() != l.runs[0].n.Load() {
		t.Errorf("%v, %v; want %d", own, err, l.runs[0].n.Load())
	}
}

// A program that closed its kept regions while there was no host has them withdrawn
// when it is back, also if another program has the name of the first of them by then.
func TestForsakenOfAnother(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	dial := hostingOf(t, a, mayKeep)
	gate := make(chan struct{}) // is closed when the program may come back
	g := guestBy(t, dial, fi.DomainAttr{}, func(ctx context.Context) (*share.Talk, error) {
		select {
		case <-gate:
			return dial(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	mine, err := g.NewRegion("mine", 4096)
	second, err2 := g.NewRegion("second", 4096)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Keep(mine), g.Keep(second)); err != nil {
		t.Fatal(err)
	}
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	if err := errors.Join(mine.Close(), second.Close(), a.Hosting().WithdrawKept(a.Hosting().Kept()[0].UID, "mine")); err != nil {
		t.Fatal(err)
	}
	other, _ := keeper(t, dial)
	other.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	close(gate)
	testnet.Eventually(t, "only the other program's region is kept", func() bool {
		list := a.Hosting().Kept()
		return len(list) == 1 && list[0].Name == "mine" && !list[0].InUse && len(a.Hosting().Guests()) == 1
	})
}
