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
