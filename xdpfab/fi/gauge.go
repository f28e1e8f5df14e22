// SPDX-License-Identifier: Apache-2.0

package fi

import "sync/atomic"

// gauge is a number that any thread may read and change; or, when it is alone, one thread
// at a time, which then needs no locked instruction. It is alone in a domain whose caller
// makes no two calls at a time (ThreadDomain): all threads that use it are the caller's.
// alone never changes once the number is in use.
type gauge[T int64 | uint64] struct {
	shared atomic.Uint64 // the number, unless alone
	own    T             // the number, if alone
	alone  bool
}

// Load returns the number.
func (g *gauge[T]) Load() T {
	if g.alone {
		return g.own
	}
	return T(g.shared.Load())
}

// Store sets the number.
func (g *gauge[T]) Store(n T) {
	if g.alone {
		g.own = n
	} else {
		g.shared.Store(uint64(n))
	}
}

// Add increases the number, and returns it.
func (g *gauge[T]) Add(n T) T {
	if g.alone {
		g.own += n
		return g.own
	}
	return T(g.shared.Add(uint64(n)))
}

// isolate makes gauges alone that are not in use yet, if the domain's caller makes no two
// calls at a time.
func (d *Domain) isolate(signed []*gauge[int64], unsigned []*gauge[uint64]) {
	if d.attr.Threading != ThreadDomain {
		return
	}
	for _, g := range signed {
		g.alone = true
	}
	for _, g := range unsigned {
		g.alone = true
	}
}
