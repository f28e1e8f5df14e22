// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/xdpfab"
)

const (
	window = 8    // slots that are looked at by one round trip
	slots  = 8192 // a multiple of it
)

// table has a key in the upper and its value in the lower half of a slot. Both are
// greater than 0: an empty slot is 0, and a value of 0 says that the key was deleted.
type table struct {
	slots xdpfab.RemoteVector[xdpfab.U128]
}

var errFull = errors.New("no room for another key")

// get returns the value of a key, or 0.
func (t table) get(ctx context.Context, key uint64) (uint64, error) {
	_, slot, err := t.find(ctx, key)
	if errors.Is(err, errFull) {
		return 0, nil // nor is the key there
	}
	return slot.Lo, err
}

// put sets the value of a key, of which 0 deletes it. Of two that put at the same time
// one is the last.
func (t table) put(ctx context.Context, key, value uint64) error {
	for {
		at, was, err := t.find(ctx, key)
		if err != nil {
			return err
		}
		swapped, err := t.slots.At(at).CompareAndSwap(ctx, was, xdpfab.U128{Hi: key, Lo: value})
		if swapped, err = xdpfab.Settle(ctx, swapped, err); swapped {
			return nil
		} else if err != nil && !errors.Is(err, xdpfab.ErrPeerRestarted) {
			return err
		}
		// Another program was faster, or the table is empty now: look again.
	}
}

// find returns the slot of a key, or an empty one where it would be. A slot that has a
// key keeps it, so the first empty one ends the search.
func (t table) find(ctx context.Context, key uint64) (at uint64, slot xdpfab.U128, err error) {
	hash := key * 0x9e3779b97f4a7c15 >> 32
	var some [window]xdpfab.U128
	for i := range uint64(slots / window) {
		from := (hash + i) % (slots / window) * window
		err := t.slots.LoadRange(ctx, from, some[:])
		if errors.Is(err, xdpfab.ErrPeerRestarted) || errors.Is(err, xdpfab.ErrOutcomeUnknown) {
			err = t.slots.LoadRange(ctx, from, some[:]) // reading twice does no harm
		}
		if err != nil {
			return 0, slot, err
		}
		for j, slot := range some {
			if slot.Hi == key || slot.Hi == 0 {
				return from + uint64(j), slot, nil
			}
		}
	}
	return 0, slot, errFull
}
