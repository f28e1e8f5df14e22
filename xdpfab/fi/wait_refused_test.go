// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"strings"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// cannotWait expects that nobody can wait for the word, for which an error says so, and
// that the word has not changed.
func cannotWait(t *testing.T, w xdpfab.Remote[uint64], says string) {
	t.Helper()
	before, err := w.Add(ctx(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range []uint64{before, before + 1} { // whether the condition holds or not
		err := w.WaitCompareAndSwap(ctx(t), old, before+2)
		if !errors.Is(err, fi.ErrOpNotSupported) || !errors.Is(err, fi.ErrNotExecuted) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %v and %q", err, fi.ErrOpNotSupported, says)
		}
	}
	if v, err := w.Load(ctx(t)); v != before || err != nil {
		t.Errorf("the word is %d, %v; want %d", v, err, before)
	}
}

// A guest of an older daemon cannot wait at a peer, and neither can a peer for words of a
// guest's attended memory, or the other memory of such a guest.
func TestWaitOfGuestsRefused(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	g := guestOf(t, a, fi.DomainAttr{})
	p, err := g.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	g.Node().Dev.(*guestpkg.Attached).Ring.Agree(nil)
	cannotWait(t, wordOf(t, p, "words"), "daemon")

	x := newAttended(t, 4096, fi.DomainAttr{})
	cannotWait(t, xdpfab.WordAt[uint64](x.peer, x.remote, 1), "only its program has mapped it")
	shared, err := x.guest.NewRegion("shared", 4096)
	if err != nil {
		t.Fatal(err)
	}
	cannotWait(t, xdpfab.WordAt[uint64](x.peer, shared.Remote(), 1), "")
}

// Nobody waits for words that the XDP program executes operations on, which tells nobody
// what it changes; nor for the other words of a domain that has such.
func TestWaitForResidentRefused(t *testing.T) {
	a, b, _ := openVeth(t, testnet.Options{}, fi.DomainAttr{}, fi.DomainAttr{})
	_, err := b.NewResidentRegion("hot", 4096)
	_, err2 := b.NewRegion("cold", 4096)
	ep, err3 := b.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cold", "hot", "cold"} {
		cannotWait(t, wordOf(t, p, name), "")
	}
}

// On a real interface, and beside memory that becomes resident later, operations wait.
func TestWaitOnVeth(t *testing.T) {
	a, b, _ := openVeth(t, testnet.Options{}, fi.DomainAttr{}, fi.DomainAttr{})
	s, err := b.Serve("words", 4096)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	word, err := s.Region.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	w := wordOf(t, p, "words")
	end := make(chan error, 2)
	waits := func(n int) {
		t.Helper()
		go func() { end <- w.WaitCompareAndSwap(ctx(t), 0, 2) }()
		testnet.Eventually(t, "it waits", func() bool {
			select {
			case err := <-end:
				t.Fatalf("it does not wait: %v, and the word is %d", err, word.Load())
			default:
			}
			q, is := s.Region.Queues().(interface{ Len() int })
			return is && q.Len() == n
		})
	}
	goesOn := func() {
		t.Helper()
		if err := w.Store(ctx(t), 0); err != nil {
			t.Fatal(err)
		}
		if err := <-end; err != nil || word.Load() != 2 {
			t.Errorf("%v, and the word is %d", err, word.Load())
		}
	}
	word.Store(1)
	waits(1)
	goesOn()
	word.Store(1)
	waits(1) // so that the session stays the engine's, however long the program takes to load
	if _, err := b.NewResidentRegion("hot", 4096); err != nil {
		t.Fatal(err)
	}
	waits(2)
	goesOn()
	goesOn()
	hot := wordOf(t, p, "hot") // the session may move to the program, as nothing waits
	for range 100 {
		if _, err := hot.Add(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	cannotWait(t, hot, "")
	if err := w.Store(ctx(t), 7); err != nil || word.Load() != 7 {
		t.Errorf("%v, %d", err, word.Load())
	}
}
