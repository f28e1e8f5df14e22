// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// queueTrial is a lock as that of package xdpfab/sync: each program waits for its number
// in the word, and gives the lock on by writing the number of the next one.
type queueTrial struct {
	*waitTrial
	turns    int     // how often each program has the lock
	released int64   // when the lock was given on last, or 0
	handed   []int64 // from there until the next program had the lock
	trips    []int64 // round trips of the swaps that gave it on
}

// turn is one number: an operation that waits, and then one that does not.
type turn struct {
	t      *queueTrial
	u      *lockUser
	number uint64
	asked  int64
	result [8]byte
	has    bool
}

// ask waits for a number, which becomes another that nobody waits for.
func (t *queueTrial) ask(u *lockUser, number uint64) {
	x := &turn{t: t, u: u, number: number, asked: t.w.now}
	op := u.post(wire.VerbWait, x, number<<1, number<<1|1, x.result[:])
	op.SetLimit(0)
	op.Publish()
	u.n.wake(t.w.now)
}

// Complete implements engine.Completer.
func (x *turn) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	t := x.t
	switch {
	case c.Outcome != engine.Success:
		t.w.fail("number %d: %+v", x.number, c.Result(later))
	case x.has:
		t.trips = append(t.trips, t.w.now-t.released)
		if next := x.number + uint64(len(t.users)-1); next <= uint64(t.turns*(len(t.users)-1)) {
			t.ask(x.u, next)
		}
	default:
		x.has = true
		if t.released > 0 {
			t.handed = append(t.handed, t.w.now-t.released)
		}
		t.released = t.w.now
		x.u.post(wire.VerbCompare, x, x.number<<1|1, (x.number+1)<<1, x.result[:]).Publish()
		x.u.n.wake(t.w.now)
	}
}

// 16 programs that want a lock all the time get it in their order, each one round trip
// after the one before has given it on, if processors take no time: half of one until
// the home has swapped the word for the next program, and half of one until that knows.
func TestHandOverTakesOneRoundTrip(t *testing.T) {
	const programs, turns = 16, 8
	w := lab(plan{nodes: 1 + programs, delay: 50 * microsecond, session: session.Config{GiveUp: 2e9}})
	w.plan.tick = microsecond
	x := &queueTrial{waitTrial: &waitTrial{w: w, dice: newDice(1), users: make([]*lockUser, 1+programs)}, turns: turns}
	for _, n := range w.nodes { // now with all extensions
		n.crash()
		for n.features()&wire.FeatureWaits == 0 {
			n.life++
		}
		n.boot()
	}
	for i := 1; i <= programs; i++ {
		x.use(t, i, true)
		x.ask(x.users[i], uint64(i))
	}
	w.until(w.now+20*millisecond, func() bool { return w.failure != nil })
	x.lock()[0] = 1 << 1 // the owner of the memory gives the lock to the first
	w.nodes[0].regions[arrayRegion].reg.Changed()
	w.nodes[0].wake(w.now)
	w.until(w.now+second, func() bool { return w.failure != nil || len(x.trips) == programs*turns })
	if w.failure != nil || len(x.trips) < programs*turns {
		t.Fatalf("%d of %d turns, %v", len(x.trips), programs*turns, w.failure)
	}
	slices.Sort(x.handed)
	slices.Sort(x.trips)
	hand, trip := x.handed[len(x.handed)/2], x.trips[len(x.trips)/2]
	t.Logf("the lock is handed over in %d µs (%d at most), where a round trip takes %d µs: %.2f round trips",
		hand/microsecond, x.handed[len(x.handed)-1]/microsecond, trip/microsecond, float64(hand)/float64(trip))
	if x.handed[len(x.handed)-1] > trip*3/2 {
		t.Errorf("the lock was on its way for %d µs, more than 1.5 round trips", x.handed[len(x.handed)-1]/microsecond)
	}
}
