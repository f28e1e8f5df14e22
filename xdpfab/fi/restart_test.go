// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/fabrictest"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// serveWord gives a node's life a region "w" of its own memory, under a key of the
// user's if there is one.
func serveWord(t *testing.T, d *xdpfab.Domain, key *uint64) *mr.Region {
	t.Helper()
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	r, err := d.Register(m, mr.Options{Name: "w", Key: key, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := d.NewEndpoint(fi.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil && !errors.Is(err, fi.ErrBusy) {
		t.Fatal(err)
	}
	return r
}

// After a restart the first use of a handle says so, whoever chose the key, however
// the former life ended, and also when another goroutine has noticed before. Then the
// handle can be bound again.
func TestRestart(t *testing.T) {
	key := uint64(7)
	for _, k := range []*uint64{nil, &key} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("own key %t, killed %t", k != nil, killed), func(t *testing.T) {
				a, b, err := xdpfab.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _, _ = a.CloseAll(), b.CloseAll() }()
				serveWord(t, b, k)
				p, err := a.Dial(ctx(t), b.Name(0))
				if err != nil {
					t.Fatal(err)
				}
				first, err := xdpfab.Word[uint64](ctx(t), p, "w", 0)
				second, err2 := xdpfab.Word[uint64](ctx(t), p, "w", 1)
				vector, err3 := xdpfab.Vector[uint64](ctx(t), p, "w")
				auto, err4 := xdpfab.Word[uint64](ctx(t), p, "w", 2, xdpfab.AutoRebind())
				if err := errors.Join(err, err2, err3, err4); err != nil {
					t.Fatal(err)
				}
				if n, err := first.Add(ctx(t), 3); n != 3 || err != nil {
					t.Fatal(n, err)
				}
				if b, err = on(b.Again(killed)); err != nil {
					t.Fatal(err)
				}
				serveWord(t, b, k)
				told := func(what string, err error) {
					t.Helper()
					if !errors.Is(err, fi.ErrPeerRestarted) || !errors.Is(err, fi.ErrNotExecuted) {
						t.Errorf("%s, first use after the restart: %v", what, err)
					}
				}
				if _, err = first.Add(ctx(t), 1); !errors.Is(err, fi.ErrPeerRestarted) { // it may have met the former life
					t.Errorf("word, first use after the restart: %v", err)
				}
				_, err = first.Add(ctx(t), 1)
				told("word, again", err)
				_, err = second.Add(ctx(t), 1)
				told("another word", err)
				told("vector", vector.Add(ctx(t), []uint64{5}, []uint64{1}, nil))
				if n, err := auto.Add(ctx(t), 1); n != 1 || err != nil {
					t.Errorf("a word that binds itself: %d, %v", n, err)
				}
				if err := errors.Join(first.Rebind(ctx(t)), vector.Rebind(ctx(t))); err != nil {
					t.Fatal(err)
				}
				if n, err := first.Add(ctx(t), 1); n != 1 || err != nil {
					t.Errorf("after Rebind: %d, %v", n, err)
				}
				if err := vector.Add(ctx(t), []uint64{5}, []uint64{1}, nil); err != nil {
					t.Errorf("after Rebind: %v", err)
				}
			})
		}
	}
}

// A peer that restarts and does not serve again is not called silent: it answers.
func TestRestartWithoutService(t *testing.T) {
	a, b, err := fabrictest.Join(t, fi.DomainAttr{GiveUp: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = a.CloseAll(), b.CloseAll() }()
	serveWord(t, b, nil)
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "w", 0)
	if err == nil {
		_, err = w.Add(ctx(t), 3)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err = on(b.Again(true)); err != nil {
		t.Fatal(err)
	}
	_, err = w.Add(ctx(t), 1)
	if !errors.Is(err, fi.ErrOutcomeUnknown) || !errors.Is(err, fi.ErrRefused) || errors.Is(err, fi.ErrPeerSilent) {
		t.Errorf("%v, want an unknown outcome and ErrRefused", err)
	}
	if want := "outcome unknown: peer refused the session: it has no such endpoint: it answers, but has forgotten the " +
		"session before, as after a restart: start there what served"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error is\n%v\nwant at its end\n%s", err, want)
	}
}

// Memory that is registered anew under the same key is not the region that a handle was
// made from.
func TestRegionRegisteredAnew(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = a.CloseAll(), b.CloseAll() }()
	key := uint64(7)
	r := serveWord(t, b, &key)
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "w", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx(t), 3); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx(t), 1); !errors.Is(err, fi.ErrPeerRestarted) || !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("on a region that is gone: %v", err)
	}
	serveWord(t, b, &key)
	if _, err := w.Add(ctx(t), 1); !errors.Is(err, fi.ErrPeerRestarted) || !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("on a region registered anew: %v", err)
	}
	if n, err := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: key}, 0).Load(ctx(t)); n != 0 || err != nil {
		t.Errorf("the new memory holds %d, %v", n, err)
	}
}

// A handle that binds itself finds a region that is registered anew under another key.
func TestAutoRebindFindsAnotherKey(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = a.CloseAll(), b.CloseAll() }()
	r := serveWord(t, b, nil)
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "w", 0, xdpfab.AutoRebind())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx(t), 3); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx(t), 1); !errors.Is(err, fi.ErrNoRegion) {
		t.Errorf("without a region: %v", err)
	}
	serveWord(t, b, nil)
	if n, err := w.Add(ctx(t), 1); n != 1 || err != nil {
		t.Errorf("%d, %v, want 1", n, err)
	}
}
