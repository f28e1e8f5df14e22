// SPDX-License-Identifier: Apache-2.0

package host

import (
	"time"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// An operation in flight may take as long as the give-up time. HandOver holds only the
// guest that posted it. The other guests continue, and pause shortly in the end.

// MostHeld bounds the pause of all guests in HandOver. It is a variable for tests.
var MostHeld = 2 * time.Second

const (
	// briefly is how long a guest's operations may take that the others wait for.
	briefly = 100 * time.Millisecond
	// withoutParts is how long a guest may take to post the next part of an operation.
	withoutParts = 500 * time.Millisecond
	outwaitPoll  = time.Millisecond
)

// outwaited is a guest whose operations HandOver waits for.
type outwaited struct {
	st        *node.Stepper
	ring      *share.HostRing
	slow      bool
	completed uint64    // operations and parts
	since     time.Time // when the last one of them did
}

func (g *Guest) outwaited(f *share.HostRing) *outwaited {
	return &outwaited{st: g.St, ring: f, since: time.Now()}
}

// outwait returns with all guests held, when none has operations in flight or the limit
// has passed. At first it holds only those whose operations take longer than briefly.
func (h *Host) outwait(guests []*Guest, limit time.Duration) {
	var all []*outwaited
	for _, g := range guests {
		if _, f := g.describe(); f != nil {
			all = append(all, g.outwaited(f))
		}
	}
	for end := time.Now().Add(limit); ; {
		for _, x := range all {
			x.st.Call(x.ring.Hold)
		}
		slow := h.undrained(all, time.Now().Add(min(briefly, limit)))
		if len(slow) == 0 || h.n.End.Err() != nil || !time.Now().Before(end) {
			return
		}
		for _, x := range slow {
			x.slow = true
		}
		for _, x := range all {
			if !x.slow {
				x.st.Call(x.ring.Unhold)
			}
		}
		h.undrained(slow, end)
	}
}

// undrained waits until no guest has operations in flight, and returns the guests that
// still have some at the end.
func (h *Host) undrained(all []*outwaited, end time.Time) (slow []*outwaited) {
	for _, x := range all {
		over := x.idle()
		for ; !over && h.n.End.Err() == nil && time.Now().Before(end); over = x.idle() {
			time.Sleep(outwaitPoll)
		}
		if !over {
			slow = append(slow, x)
		}
	}
	return slow
}

// idle reports whether the guest has nothing in flight, or does not post the next part.
func (x *outwaited) idle() (is bool) {
	now := time.Now()
	x.st.Call(func() {
		if n := x.ring.Counts.Completed; n != x.completed {
			x.completed, x.since = n, now
		}
		is = x.ring.Drained() || x.ring.Starved() && now.Sub(x.since) >= withoutParts
	})
	return is
}
