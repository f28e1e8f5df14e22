// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// While an operation of the guest waits for its next part, the entry that brings it must
// not be stuck behind others for which the engine has no room, or which a host ring that
// is held must not take. So those are put aside, in their order, and each keeps a place
// for its completion. They are posted before any that come later, by the next host if
// that is to be.

// partly reports whether an entry belongs to an operation that comes part by part and is
// under way.
func (f *HostRing) partly(x *engine.Entry) bool {
	return (x.Verb == VerbFeed || x.Verb == VerbSever) && f.streams[x.Key] != nil
}

// take posts an entry of the ring, or puts it aside. It returns the cost, 0 if the entry
// has to stay in the ring.
func (f *HostRing) take(x *engine.Entry) (cost int) {
	switch x.Verb { // those that belong to no operation of the guest
	case VerbAnswer:
		return f.answer(x)
	case VerbReply:
		return f.reply(x)
	}
	if !f.held && len(f.aside) == 0 {
		cost = f.post(x)
	}
	switch {
	case cost > 0:
		return cost
	case f.partly(x):
		return f.post(x)
	case len(f.streams) == 0 || len(f.aside) == len(f.ops):
		return 0
	}
	f.aside = append(f.aside, *x)
	return engine.EntryCost
}

// retry posts the operations that were put aside until there is no room, and returns the
// cost. If it is less than the credit, nothing is left aside of operations that come part
// by part and are under way.
func (f *HostRing) retry(credit int) (spent int) {
	if f.held && len(f.streams) == 0 {
		return 0
	}
	blocked := f.held
	f.aside = slices.DeleteFunc(f.aside, func(x engine.Entry) bool {
		if spent >= credit || blocked && !f.partly(&x) {
			return false
		}
		cost := f.post(&x)
		spent += cost
		blocked = blocked || cost == 0
		return cost > 0
	})
	return spent
}
