// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A word that a region does not have is refused, whatever the index, and whether the
// region's size is known or not.
func TestWordAtOutside(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	words := found.Size / 8
	for _, r := range []xdpfab.RemoteRegion{found, {Key: found.Key}} {
		if err := xdpfab.WordAt[uint64](p, r, words-1).Store(ctx(t), 1); err != nil {
			t.Errorf("the last word: %v", err)
		}
		for _, index := range []uint64{words, 1 << 61, math.MaxUint64 / 8, math.MaxUint64} {
			err := xdpfab.WordAt[uint64](p, r, index).Store(ctx(t), 1)
			if !errors.Is(err, xdpfab.ErrOutOfBounds) || !errors.Is(err, xdpfab.ErrNotExecuted) {
				t.Errorf("word %d: %v, want ErrOutOfBounds and ErrNotExecuted", index, err)
			}
		}
	}
}
