// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// stuck is a function that says when its context ends, and returns when it may.
type stuck struct{ has, ended, may chan struct{} }

func newStuck() *stuck {
	return &stuck{make(chan struct{}, 10), make(chan struct{}, 10), make(chan struct{})}
}

func (s *stuck) answer(ctx context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
	if string(request) == "stay" {
		s.has <- struct{}{}
		<-ctx.Done()
		s.ended <- struct{}{}
		<-s.may
	}
	return request, nil
}

// stay begins a call that does not end by itself.
func stay(t *testing.T, p *xdpfab.Peer) <-chan error {
	end := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx(t), []byte("stay"), nil)
		end <- err
	}()
	return end
}

// answers expects that calls have replies, at last.
func answers(t *testing.T, p *xdpfab.Peer) {
	t.Helper()
	testnet.Eventually(t, "a reply", func() bool {
		n, err := p.Call(ctx(t), []byte("hello"), make([]byte, 5))
		return err == nil && n == 5
	})
}

// A guest that dies, or whose domain is closed, ends its calls, and the next one has its
// number.
func TestGuestDiesWithCalls(t *testing.T) {
	for name, end := range map[string]func(g *xdpfab.Domain){
		"dies":   func(g *xdpfab.Domain) { g.Node().Dev.(*guestpkg.Attached).EndTalk() },
		"closes": func(g *xdpfab.Domain) { go func() { _ = g.CloseAll() }() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := pipeWithRegion(t, 4096)
			g, s := guestOf(t, a, fi.DomainAttr{}), newStuck()
			if _, err := g.Handle(xdpfab.HandlerAttr{Number: 5}, s.answer); err != nil {
				t.Fatal(err)
			}
			p, err := b.Dial(ctx(t), a.Name(5))
			if err != nil {
				t.Fatal(err)
			}
			lost := stay(t, p)
			<-s.has
			end(g)
			if err := <-lost; !errors.Is(err, fi.ErrOutcomeUnknown) && !errors.Is(err, fi.ErrPeerRestarted) {
				t.Errorf("%v, want %v", err, fi.ErrOutcomeUnknown)
			}
			<-s.ended
			close(s.may)
			next := guestOf(t, a, fi.DomainAttr{})
			testnet.Eventually(t, "the number is free", func() bool {
				_, err := next.Handle(xdpfab.HandlerAttr{Number: 5}, s.answer)
				return err == nil
			})
			answers(t, p)
		})
	}
}

// The calls that a guest has when its daemon ends are lost. With the next daemon it
// answers again.
func TestGuestAnswersAtNextHost(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	dial, leave := successive(a)
	g, s := guestBy(t, dial, fi.DomainAttr{}, dial), newStuck()
	if _, err := g.Handle(xdpfab.HandlerAttr{Number: 5}, s.answer); err != nil {
		t.Fatal(err)
	}
	p, err := b.Dial(ctx(t), a.Name(5))
	if err != nil {
		t.Fatal(err)
	}
	lost := stay(t, p)
	<-s.has
	leave()
	if err := <-lost; !errors.Is(err, fi.ErrOutcomeUnknown) && !errors.Is(err, fi.ErrPeerRestarted) {
		t.Errorf("%v, want %v", err, fi.ErrOutcomeUnknown)
	}
	<-s.ended
	close(s.may)
	answers(t, p)
}

// Programs behind one daemon, and those behind others, call each other.
func TestGuestsCallGuests(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	callee, s := guestOf(t, a, fi.DomainAttr{}), newStuck()
	if _, err := callee.Handle(xdpfab.HandlerAttr{Number: 5}, s.answer); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*xdpfab.Domain{"of another daemon": guestOf(t, b, fi.DomainAttr{}),
		"of the same daemon": guestOf(t, a, fi.DomainAttr{}), "itself": callee} {
		p, err := d.Dial(ctx(t), a.Name(5))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n, err := p.Call(ctx(t), []byte("hello"), make([]byte, 5)); n != 5 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// A number that is taken, and one that is none, are told in the same words behind a
// daemon as without one.
func TestNumbersOfGuests(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	g := guestOf(t, a, fi.DomainAttr{})
	if _, err := a.NewMailbox(xdpfab.MailboxAttr{Number: 3}); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int]error{3: fi.ErrBusy, 70_000: fi.ErrArgument, -2: fi.ErrArgument} {
		_, direct := a.NewMailbox(xdpfab.MailboxAttr{Number: number})
		_, behind := g.NewMailbox(xdpfab.MailboxAttr{Number: number})
		if !errors.Is(direct, want) || !errors.Is(behind, want) || direct.Error() != behind.Error() {
			t.Errorf("number %d: %v, and behind a daemon %v; want %v", number, direct, behind, want)
		}
	}
}
