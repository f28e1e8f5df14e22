// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// endings are the ways in which a program can end.
var endings = map[string]func(*testing.T, *xdpfab.Domain){
	"closed": func(t *testing.T, g *xdpfab.Domain) {
		if err := g.CloseAll(); err != nil {
			t.Error(err)
		}
	},
	"killed": func(_ *testing.T, g *xdpfab.Domain) { g.Node().Dev.(*guestpkg.Attached).EndTalk() },
}

// keeper is a program that has a region "mine" of 4096 bytes kept, and serves it by
// endpoint 7.
func keeper(t *testing.T, dial func(context.Context) (*share.Talk, error)) (*xdpfab.Domain, *mr.Region) {
	t.Helper()
	g := guestBy(t, dial, fi.DomainAttr{}, nil)
	r, err := g.NewRegion("mine", 4096)
	if err == nil {
		err = g.Keep(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	serveAt(t, g, 7)
	return g, r
}

func serveAt(t *testing.T, g *xdpfab.Domain, number int) {
	t.Helper()
	ep, err := g.NewEndpoint(fi.EndpointAttr{Number: number})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// untilLeft waits until no kept region of a domain is in use.
func untilLeft(t *testing.T, d *xdpfab.Domain) {
	t.Helper()
	testnet.Eventually(t, "the programs gone", func() bool {
		return len(d.Hosting().Guests()) == 0 && !slices.ContainsFunc(d.Hosting().Kept(), func(k host.KeptRegion) bool { return k.InUse })
	})
}

var mayKeep = host.GuestLimits{Kept: 8192, Rule: "rule 7"}

// A region that is kept outlives its program, and the next one takes it back: peers see
// neither.
func TestKept(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			a, b, _ := pipeWithRegion(t, 4096)
			dial := hostingOf(t, a, mayKeep)
			g, r := keeper(t, dial)
			other, err := g.NewRegion("passing", 4096)
			if err != nil {
				t.Fatal(err)
			}
			incarnation, key, addr := r.Incarnation(), r.Key(), g.Name(7)
			ctx := t.Context()
			p, err := b.Dial(ctx, addr)
			if err != nil {
				t.Fatal(err)
			}
			w, err := xdpfab.Word[uint64](ctx, p, "mine", 3)
			if err != nil {
				t.Fatal(err)
			}
			passing, err := p.Lookup(ctx, other.Name())
			if err != nil {
				t.Fatal(err)
			}
			add := func(want uint64) {
				t.Helper()
				if n, err := w.Add(ctx, 1); n != want || err != nil {
					t.Fatalf("%d, %v; want %d", n, err, want)
				}
			}
			add(1)
			end(t, g)
			untilLeft(t, a)
			add(2)
			if err := p.Read(ctx, passing, 0, make([]byte, 8)); !errors.Is(err, fi.ErrPeerRestarted) {
				t.Errorf("a region that is not kept: %v", err)
			}
			want := host.KeptRegion{Name: "mine", UID: a.Hosting().Kept()[0].UID, Bytes: 4096, Endpoints: []uint16{7}, Rule: "rule 7"}
			if list := a.Hosting().Kept(); len(list) != 1 || list[0].Name != want.Name || list[0].InUse || list[0].Bytes != 4096 || !slices.Equal(list[0].Endpoints, want.Endpoints) || list[0].Rule != want.Rule {
				t.Errorf("%+v, want %+v", list, want)
			}

			next := guestBy(t, dial, fi.DomainAttr{}, nil)
			back, err := next.TakeBack("mine")
			if err != nil {
				t.Fatal(err)
			}
			own, err := back.Uint64(3)
			if err != nil || own.Load() != 2 || back.Incarnation() != incarnation || back.Key() != key {
				t.Errorf("%v, %v; want 2 in incarnation %d", back, err, incarnation)
			}
			add(3)
			serveAt(t, next, 7)
			add(4)
			if own.Load() != 4 {
				t.Errorf("the program sees %d, want 4", own.Load())
			}
			if err := back.Close(); err != nil {
				t.Error(err)
			}
			if _, err := w.Add(ctx, 1); err == nil {
				t.Error("an operation on a region that was withdrawn")
			}
			if list := a.Hosting().Kept(); len(list) != 0 {
				t.Errorf("still kept: %+v", list)
			}
		})
	}
}

// A program that ends without having taken everything back leaves it once more.
func TestKeptTwice(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	dial := hostingOf(t, a, mayKeep)
	g, _ := keeper(t, dial)
	second, err := g.NewRegion("second", 4096)
	if err == nil {
		err = g.Keep(second)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	successor := guestBy(t, dial, fi.DomainAttr{}, nil)
	if _, err := successor.TakeBack("mine"); err != nil {
		t.Fatal(err)
	}
	if list := a.Hosting().Kept(); len(list) != 2 || !list[0].InUse || list[1].InUse {
		t.Errorf("%+v", list)
	}
	successor.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	p, err := b.Dial(t.Context(), a.Name(7))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](t.Context(), p, "second", 0)
	if err == nil {
		_, err = w.Add(t.Context(), 1)
	}
	if err != nil {
		t.Error(err)
	}
}

// What may not be kept, or cannot be taken back, is refused with the reason.
func TestKeepRefused(t *testing.T) {
	wait := host.EndWait
	host.EndWait = time.Millisecond
	t.Cleanup(func() { host.EndWait = wait }) // after the hosts
	a, _, direct := pipeWithRegion(t, 4096)
	dial := hostingOf(t, a, mayKeep)
	g, r := keeper(t, dial)
	refused := func(err, is error, want string) {
		t.Helper()
		if !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %v, %q", err, is, want)
		}
	}
	if err := g.Keep(r); err != nil {
		t.Errorf("keep it twice: %v", err)
	}
	refused(a.Keep(direct), fi.ErrNotImplemented, "AttachAlways")
	_, err := a.TakeBack("mine")
	refused(err, fi.ErrNotImplemented, "AttachAlways")
	keep := func(name string, size int) error {
		m, err := mr.Memfd("test", size)
		if err != nil {
			t.Fatal(err)
		}
		r, err := g.Register(m, mr.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		err = g.Keep(r)
		if err := errors.Join(r.Close(), m.Close()); err != nil {
			t.Error(err)
		}
		return err
	}
	if err := keep("", 4096); err == nil || !strings.Contains(err.Error(), "without a name") {
		t.Errorf("without a name: %v", err)
	}
	refused(keep("large", 8192), fi.ErrDenied, "rule 7 allows 8192 for all its programs")
	if err := keep("second", 4096); err != nil {
		t.Errorf("within the limit, and closed again: %v", err)
	}
	other := guestBy(t, dial, fi.DomainAttr{}, nil)
	same, err := other.NewRegion("mine", 4096)
	if err != nil {
		t.Fatal(err)
	}
	refused(other.Keep(same), mr.ErrNameInUse, `a region "mine" is kept for user`)
	_, err = other.TakeBack("mine")
	refused(err, fi.ErrBusy, "has it")
	_, err = other.TakeBack("nothing")
	refused(err, fi.ErrNotKept, `"nothing"`)
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	testnet.Eventually(t, "the program gone", func() bool { return len(a.Hosting().Guests()) == 1 })
	_, err = other.TakeBack("mine")
	refused(err, fi.ErrBusy, "want a domain that has not")
	if err := g.Keep(r); !errors.Is(err, fi.ErrHostLost) {
		t.Errorf("after the end: %v", err)
	}
	little := guestBy(t, hostingOf(t, a, host.GuestLimits{Memory: 4095, Rule: "rule 8"}), fi.DomainAttr{}, nil)
	_, err = little.TakeBack("mine")
	refused(err, fi.ErrDenied, "rule 8 allows 4095")
}

// A kept region is withdrawn by whoever asks the host, once no program uses it.
func TestWithdrawKept(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	g, _ := keeper(t, hostingOf(t, a, mayKeep))
	p, err := b.Dial(t.Context(), a.Name(7))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](t.Context(), p, "mine", 0)
	if err != nil {
		t.Fatal(err)
	}
	uid := a.Hosting().Kept()[0].UID
	if err := a.Hosting().WithdrawKept(uid, "mine"); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("in use: %v", err)
	}
	if err := a.Hosting().WithdrawKept(uid+1, "mine"); !errors.Is(err, fi.ErrNotKept) {
		t.Errorf("another user's: %v", err)
	}
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	if err := a.Hosting().WithdrawKept(uid, "mine"); err != nil {
		t.Error(err)
	}
	if _, err := w.Add(t.Context(), 1); err == nil {
		t.Error("an operation on a region that was withdrawn")
	}
	if err := a.Hosting().WithdrawKept(uid, "mine"); !errors.Is(err, fi.ErrNotKept) {
		t.Errorf("withdrawn already: %v", err)
	}
	serveAt(t, a, 7) // nothing has the number any more
}

// Nobody takes messages for a program that ended: senders are told so, and memory is
// served all the same; and the next program takes messages again.
func TestKeptTakesNoMessages(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	dial := hostingOf(t, a, mayKeep)
	g := guestBy(t, dial, fi.DomainAttr{}, nil)
	r, err := g.NewRegion("mine", 4096)
	if err == nil {
		err = g.Keep(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var buf [16]byte
	var p *xdpfab.Peer
	converse := func(g *xdpfab.Domain) {
		t.Helper()
		box, err := g.NewMailbox(xdpfab.MailboxAttr{Number: 7})
		if err == nil && p == nil {
			p, err = b.Dial(ctx, a.Name(7))
		}
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := box.Receive(ctx, buf[:])
			got <- err
		}()
		// The next program may take messages before the session of the time between has
		// ended, in which the sender was told that there was no receiver.
		begun := time.Now()
		for err = fi.ErrNotExecuted; errors.Is(err, fi.ErrNotExecuted) && time.Since(begun) < testnet.Patience; {
			err = p.Send(ctx, []byte("hello"))
		}
		if err != nil {
			t.Fatal(err) // nothing will be received
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
	converse(g)
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	if err := p.Send(ctx, []byte("anybody?")); err == nil {
		t.Error("a message to nobody")
	}
	w, err := xdpfab.Word[uint64](ctx, p, "mine", 0)
	if err == nil {
		_, err = w.Add(ctx, 1)
	}
	if err != nil {
		t.Error(err)
	}
	next := guestBy(t, dial, fi.DomainAttr{}, nil)
	if _, err := next.TakeBack("mine"); err != nil {
		t.Fatal(err)
	}
	converse(next)
}

// What a successor has of a former program is given back also when the last region is
// withdrawn while the successor ends.
func TestWithdrawKeptAtEnd(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	g, _ := keeper(t, hostingOf(t, a, mayKeep))
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	untilLeft(t, a)
	region := a.Hosting().Kept()[0]
	a.Hosting().Mu.Lock()
	successor := a.Hosting().Tenancy.Kept[host.KeptID{Uid: region.UID, Name: region.Name}].Holder
	successor.Ended, successor.Gone = false, make(chan struct{}) // as if it were running
	a.Hosting().Mu.Unlock()
	successor.KeepRegions()
	if err := a.Hosting().WithdrawKept(region.UID, region.Name); err != nil {
		t.Fatal(err)
	}
	successor.OfferKept()
	a.Node().Numbers.Each(func(number uint16, x node.Tenant) {
		if _, is := x.(*host.GuestEndpoint); is {
			t.Errorf("endpoint %d is left", number)
		}
	})
}
