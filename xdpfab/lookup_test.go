// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A look-up changes nothing, so nothing about it is unknown: not when the node has died,
// and not when it has restarted meanwhile.
func TestLookupOfADeadNode(t *testing.T) {
	w := newNetwork(t, 2, xdpfab.DomainAttr{GiveUp: 200 * time.Millisecond})
	peer, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Crash(1); err != nil {
		t.Fatal(err)
	}
	never := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, xdpfab.ErrNotExecuted) || errors.Is(err, xdpfab.ErrOutcomeUnknown) {
			t.Errorf("%s: %v; want ErrNotExecuted", what, err)
		}
	}
	_, err = peer.Lookup(ctx(t), "w")
	never("Lookup", err)
	if !errors.Is(err, xdpfab.ErrPeerSilent) {
		t.Errorf("Lookup: %v; want ErrPeerSilent", err)
	}
	_, err = peer.Regions(ctx(t))
	never("Regions", err)
	_, err = xdpfab.Word[uint64](ctx(t), peer, "w", 0)
	never("Word", err)
	_, err = xdpfab.Vector[uint64](ctx(t), peer, "w")
	never("Vector", err)
}

// A look-up changes nothing, so one that is sent in the session with the former life is
// repeated with the present one: also the first call after a restart knows the regions of
// that life.
func TestLookupAfterARestart(t *testing.T) {
	for name, look := range map[string]func(*xdpfab.Peer, xdpfab.Remote[uint64]) error{
		"Lookup": func(p *xdpfab.Peer, _ xdpfab.Remote[uint64]) error {
			_, err := p.Lookup(ctx(t), "w")
			return err
		},
		"Regions": func(p *xdpfab.Peer, _ xdpfab.Remote[uint64]) error {
			list, err := p.Regions(ctx(t))
			if err == nil && len(list) != 1 {
				t.Errorf("%v, want one region", list)
			}
			return err
		},
		"Word": func(p *xdpfab.Peer, _ xdpfab.Remote[uint64]) error {
			h, err := xdpfab.Word[uint64](ctx(t), p, "w", 0)
			if err == nil {
				_, err = h.Add(ctx(t), 1)
			}
			return err
		},
		"Rebind": func(_ *xdpfab.Peer, h xdpfab.Remote[uint64]) error { return h.Rebind(ctx(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newNetwork(t, 2)
			h := wordOn(t, w, 0, 1)
			if _, err := h.Add(ctx(t), 1); err != nil {
				t.Fatal(err)
			}
			p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
			if err != nil {
				t.Fatal(err)
			}
			d, err := w.Restart(1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Serve("w", 64); err != nil {
				t.Fatal(err)
			}
			if err := look(p, h); err != nil {
				t.Error(err)
			}
		})
	}
}
