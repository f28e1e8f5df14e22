// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
)

// AtomicAttr is what QueryAtomic returns: the two fields of struct fi_atomic_attr, and
// what libfabric has no field for. It holds for targets of this version of xdpfab. The
// elements of one call are updated in ascending order, those of extents in the order of
// the extents.
type AtomicAttr struct {
	Count int // elements in one call
	Size  int // bytes of an element
	Align int // bytes; the address of an element has to be a multiple of it

	// CoherentAlign says against what an element is atomic. If its address is a multiple
	// of CoherentAlign bytes, that is everything on the target's node: all domains and
	// all processes, and the atomic instructions of its CPUs, those of sync/atomic
	// included. Otherwise, and always if CoherentAlign is 0, it is only operations on the
	// same datatype that the same process runs.
	CoherentAlign int
	// Order has the bytes of a call up to which data is ordered as operations are
	// (max_order_raw_size and so on), by endpoints that have an order.
	Order OrderSizes
	// Resident says that on a resident region the XDP program of the target's interface
	// runs the operation, in the kernel, if the session has a place with it: see
	// Domain.NewResidentRegion. Everything else is run by the thread that steps the
	// engine on which the session has come in: the poller, or with manual progress a
	// goroutine of the target. The poller also runs the rest of a frame that has one
	// operation for it. The NIC runs nothing.
	Resident bool
}

// AtomicValid returns the most elements that one call takes of a form: Base for Atomic,
// Fetch for FetchAtomic, Compare for CompareAtomic (fi_atomicvalid and so on). Long
// arrays are divided among frames inside.
func (ep *Endpoint) AtomicValid(f atomic.Func, dt atomic.Datatype, op atomic.Op) (count int, err error) {
	attr, err := ep.dom.QueryAtomic(f, dt, op, 0)
	return attr.Count, err
}

// QueryAtomic reports whether an operation is supported for a datatype in one of the
// three forms, and how it works (fi_query_atomic). With FlagTagged it is about the buffer
// of a tagged receive as the target; other flags are refused with ErrBadFlags.
func (d *Domain) QueryAtomic(f atomic.Func, dt atomic.Datatype, op atomic.Op, flags OpFlags) (AtomicAttr, error) {
	attr := AtomicAttr{Size: dt.Size()}
	if err := flags.check("query with flags", FlagTagged); err != nil {
		return attr, err
	}
	if !atomic.Valid(f, op, dt) {
		return attr, fmt.Errorf("xdpfab: %v %v on %v: %w", f, op, dt, ErrOpNotSupported)
	}
	attr.Count, attr.Align, attr.CoherentAlign = math.MaxUint32, dt.Align(), coherentAlign(dt)
	attr.Order = OrderSizes{Unlimited, Unlimited, Unlimited}
	if attr.Resident = dt <= atomic.Uint64; flags != 0 { // integers of 8 to 64 bits
		attr.Count, attr.Resident = int(d.mostTagged(verbOf[f], op, dt)), false // a receive is in no region
	}
	return attr, nil
}

// coherentAlign returns AtomicAttr.CoherentAlign: CPUs have atomic instructions for up to
// 16 bytes, at multiples of their size. A target whose CPU has none for 16 is an
// exception that a query cannot know.
func coherentAlign(dt atomic.Datatype) int {
	if n := dt.Size(); n <= 16 {
		return n
	}
	return 0
}
