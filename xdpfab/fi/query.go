// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
)

// AtomicAttr is what QueryAtomic returns: the two fields of struct fi_atomic_attr, and
// what libfabric has no field for. It holds for targets of this version of xdpfab.
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
	// Ascending says that the elements of one call are updated in ascending order, those
	// of extents in the order of the extents.
	Ascending bool
	// Order has the bytes of a call up to which data is ordered as operations are
	// (max_order_raw_size and so on), by endpoints that have an order.
	Order OrderSizes
	Actor Actor // what runs the operation on an ordinary region
	// ResidentActor is what runs it on a resident region, if the session has a place with
	// the XDP program: otherwise the poller does, as it does the rest of a frame that has
	// one operation for it.
	ResidentActor Actor
}

// Actor is what runs operations on the memory of a node.
type Actor uint8

// ActorPoller is the thread that steps the engine on which a session has come in: the
// poller, or with manual progress a goroutine of the target. The NIC runs nothing.
const ActorPoller Actor = iota

// ActorXDP is the XDP program of the target's interface, in the kernel: see
// Domain.NewResidentRegion.
const ActorXDP Actor = 1

// String returns "poller" or "xdp".
func (a Actor) String() string { return modeString("Actor", []string{"poller", "xdp"}, a) }

// QueryFlags choose the form of the operation that QueryAtomicFlags is about. None of
// them means the base form.
type QueryFlags uint32

const (
	QueryFetch   QueryFlags = 1 << iota // FI_FETCH_ATOMIC: the fetch form
	QueryCompare                        // FI_COMPARE_ATOMIC: the compare form
	QueryTagged                         // FI_TAGGED: the buffer of a tagged receive is the target; see FlagTagged
)

// String returns the names of the flags, such as "fetch|tagged".
func (f QueryFlags) String() string { return flagString(f, []string{"fetch", "compare", "tagged"}) }

// QueryAtomic reports whether an operation is supported for a datatype in one of the
// three forms, and how it works (fi_query_atomic).
func (d *Domain) QueryAtomic(f atomic.Func, dt atomic.Datatype, op atomic.Op) (AtomicAttr, error) {
	return query(f, dt, op, unlimited)
}

func query(f atomic.Func, dt atomic.Datatype, op atomic.Op,
	limit func(atomic.Func, atomic.Datatype, atomic.Op) int,
) (AtomicAttr, error) {
	n, err := valid(f, dt, op, limit)
	if err != nil {
		return AtomicAttr{Size: dt.Size()}, err
	}
	resident := ActorPoller
	if dt <= atomic.Uint64 { // integers of 8 to 64 bits
		resident = ActorXDP
	}
	return AtomicAttr{
		ResidentActor: resident,
		Count:         n, Size: dt.Size(), Align: dt.Align(), CoherentAlign: coherentAlign(dt), Ascending: true,
		Order: OrderSizes{Unlimited, Unlimited, Unlimited}, Actor: ActorPoller,
	}, nil
}

// QueryAtomicFlags is QueryAtomic with the flags of fi_query_atomic in place of the form.
// FI_FETCH_ATOMIC and FI_COMPARE_ATOMIC exclude each other: both are refused with
// ErrBadFlags, as unknown flags are.
func (d *Domain) QueryAtomicFlags(dt atomic.Datatype, op atomic.Op, flags QueryFlags) (AtomicAttr, error) {
	form := atomic.Base
	switch flags &^ QueryTagged {
	case 0:
	case QueryFetch:
		form = atomic.Fetch
	case QueryCompare:
		form = atomic.Compare
	default:
		return AtomicAttr{}, fmt.Errorf("xdpfab: query with flags %v: want fetch or compare, not both, or neither: %w",
			flags, ErrBadFlags)
	}
	if flags&QueryTagged != 0 {
		attr, err := query(form, dt, op, d.taggedLimit)
		attr.ResidentActor = attr.Actor // its target is a receive, and in no region
		return attr, err
	}
	return d.QueryAtomic(form, dt, op)
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
