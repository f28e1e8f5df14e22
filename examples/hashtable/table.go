// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/xdpfab"
)

const (
	window = 8    // slots that one round trip reads
	slots  = 8192 // a multiple of window
)

// table has a key in the upper half of each slot, and its value in the lower half. Both
// are greater than 0. An empty slot is 0, and a value of 0 means that the key was
// deleted.
type table struct {
	slots xdpfab.RemoteVector[xdpfab.U128]
}

var errFull = errors.New("no room for another key")

// get returns the value of a key, or 0.
func (t table) get(ctx context.Context, key uint64) (uint64, error) {
	_, slot, err := t.find(ctx, key)
	if errors.Is(err, errFull) {
		return 0, nil // the key is not there either
	}
	return slot.Lo, err
}

// put sets the value of a key. A value of 0 deletes the key. If two programs put at the
// same time, the later value stays.
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
		// Another program was faster, or the table is empty now: try again.
	}
}

// find returns the slot of a key, or the empty slot where the key belongs. A slot never
// loses its key, so the first empty one ends the search.
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
