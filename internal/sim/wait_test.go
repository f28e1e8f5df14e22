// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// waitTrial is a node with a lock in its memory, for which programs on the other nodes
// wait. Each attempt swaps 0 for its own number, and gives the lock back by a plain swap.
// Every change of the word is seen: whose turn it was, and when.
type waitTrial struct {
	w     *world
	dice  dice
	users []*lockUser
	all   []*attempt // attempt number i + 1 is in place i
	last  uint64     // what was in the word when it changed last
	holds int64      // until then nobody gives the lock back
	ends  [4]int
	begin func(t *waitTrial, tb testing.TB, i int, ordered bool) // the life of a program
}

// lockUser is the program of one node in one life.
type lockUser struct {
	t       *waitTrial
	n       *node
	eng     *engine.Engine // the node's, unless the program is a guest
	guest   guestProgram   // or nil
	ring    *engine.Ring
	peer    *engine.Peer
	died    int64 // when, or 0
	ordered bool
	latest  uint64 // its attempt that had the lock last
}

// guestProgram is a program that is a guest of its node: see useGuest.
type guestProgram interface {
	step()
	die()
	hold() // prepares a takeover of the host
}

// stepGuests lets all guests run, if there are any.
func (t *waitTrial) stepGuests() {
	for _, u := range t.users {
		if u != nil && u.guest != nil {
			u.guest.step()
		}
	}
}

// attempt is one operation that waits.
type attempt struct {
	u      *lockUser
	id     uint64
	result [8]byte
	got    int64 // when it got the lock, or 0
	ended  int64 // when its caller was told, or 0
	end    engine.Result
	freed  bool
	due    int64 // when it has to have ended at the latest, or 0
}

const (
	// passedBy is the silence after which those who wait are passed by, with the time
	// that it takes to notice it and that of a packet on its way.
	passedBy = 3*second + 100*millisecond
	// toldBy is a time by which each end has been told, whatever gets lost.
	toldBy = 20 * second
)

// told are the reasons with which the target says that a session has ended there.
var told = map[session.Reason]bool{session.PeerClosed: true, session.PeerRestarted: true}

func (t *waitTrial) lock() []byte { return t.w.nodes[0].regions[arrayRegion].bytes[:8] }

// Changed implements mr.Watcher: it sees the word after every burst.
func (t *waitTrial) Changed() {
	id := binary.LittleEndian.Uint64(t.lock())
	if id == t.last {
		return
	}
	if t.last = id; id == 0 {
		return
	}
	x, now := t.all[id-1], t.w.now
	switch {
	case x.got != 0:
		t.w.fail("attempt %d got the lock twice", id)
	case x.ended != 0 && x.end.Outcome == engine.NotExecuted:
		t.w.fail("attempt %d got the lock, though it was said not to have run", id)
	case x.ended != 0 && (now > x.ended+passedBy || told[x.end.Reason]):
		t.w.fail("attempt %d got the lock %d ms after it had ended: %+v", id, (now-x.ended)/millisecond, x.end)
	case x.u.died != 0 && now > x.u.died+passedBy:
		t.w.fail("attempt %d got the lock %d ms after its program had died", id, (now-x.u.died)/millisecond)
	case x.u.ordered && x.u.latest > id:
		t.w.fail("attempt %d got the lock after attempt %d, which came later", id, x.u.latest)
	}
	x.got, x.u.latest = now, id
}

// Closed implements mr.Watcher.
func (t *waitTrial) Closed() {}

// free gives the lock back as the owner of the memory does, if nobody else will.
func (t *waitTrial) free() {
	id := binary.LittleEndian.Uint64(t.lock())
	if id == 0 {
		return
	}
	if x := t.all[id-1]; x.u.died != 0 || x.ended != 0 && x.end.Outcome != engine.Success {
		clear(t.lock())
		if r := t.w.nodes[0].regions[arrayRegion].reg; r != nil && !t.w.nodes[0].foreign {
			r.Changed()
			t.w.nodes[0].wake(t.w.now)
		}
	}
}

// overdue looks for an attempt that should have ended.
func (t *waitTrial) overdue() {
	for _, x := range t.all {
		if x.ended == 0 && x.u.died == 0 && x.due != 0 && t.w.now > x.due {
			t.w.fail("attempt %d waits, though its limit has passed or it was let go", x.id)
		}
	}
}

// watch has the trial see the word, from the registration of its region on.
func (t *waitTrial) watch(tb testing.TB) {
	if !t.w.nodes[0].regions[arrayRegion].reg.Watch(t) {
		tb.Fatal("the region has another watcher")
	}
}

// use begins the life of a program.
func (t *waitTrial) use(tb testing.TB, i int, ordered bool) {
	u := &lockUser{t: t, n: t.w.nodes[i], eng: t.w.nodes[i].eng, ordered: ordered}
	var err error
	if u.ring, err = engine.NewRing(64, engine.Contexts{}); err != nil {
		tb.Fatal(err)
	}
	origin := u.eng.NewOrigin(7)
	if !ordered {
		origin = u.eng.NewUnorderedOrigin(7)
	}
	u.eng.AddRing(u.ring, origin)
	if u.peer, err = origin.NewPeer(u.n.linkTo(t.w.nodes[0]), 0, 0); err != nil {
		tb.Fatal(err)
	}
	t.users[i] = u
}

// wake has the program's engines see what it has posted.
func (u *lockUser) wake() {
	if g := u.guest; g != nil {
		u.t.w.at(u.t.w.now+u.t.dice.Int64N(200*microsecond), g.step)
	}
	u.n.wake(u.t.w.now)
}

// post fills in a swap of the lock.
func (u *lockUser) post(verb wire.Verb, c engine.Completer, from, to uint64, result []byte) *engine.Submission {
	op := u.ring.Claim()
	if op == nil {
		return nil
	}
	op.Peer, op.Context, op.Count, op.Flags = u.peer.ID(), c, 1, 0
	op.Key, op.Offset = u.t.w.nodes[0].regions[arrayRegion].key(), 0
	op.Verb, op.Opcode, op.Datatype, op.Result = verb, uint8(atomic.Cswap), uint8(atomic.Uint64), result
	le := binary.LittleEndian
	op.SetOperands(le.AppendUint64(nil, to), le.AppendUint64(nil, from))
	return op
}

// try posts an attempt, which some limit, and some let go later.
func (u *lockUser) try() {
	t := u.t
	x := &attempt{u: u, id: uint64(len(t.all) + 1)}
	op := u.post(wire.VerbWait, x, 0, x.id, x.result[:])
	if op == nil {
		return
	}
	limit := uint64(0)
	switch t.dice.IntN(4) {
	case 0:
		limit = uint64(t.dice.between(1, 50_000)) // microseconds
	case 1:
		t.w.at(t.w.now+t.dice.Int64N(50*millisecond), x.letGo)
	}
	if op.SetLimit(limit); limit > 0 {
		x.due = t.w.now + int64(limit)*microsecond + toldBy
	}
	t.all = append(t.all, x)
	op.Publish()
	u.wake()
}

// letGo has the target end the attempt.
func (x *attempt) letGo() {
	if u := x.u; x.ended == 0 && u.died == 0 {
		u.eng.Collect(u.ring)
		u.peer.Recall(x)
		x.due = u.t.w.now + toldBy
		u.wake()
	}
}

// Complete implements engine.Completer.
func (x *attempt) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	t := x.u.t
	if x.ended != 0 {
		t.w.fail("attempt %d has ended twice", x.id)
	}
	x.ended, x.end = t.w.now, c.Result(later)
	t.ends[c.Outcome]++
	switch {
	case c.Outcome == engine.NotExecuted && x.got != 0:
		t.w.fail("attempt %d had the lock, and is said not to have run: %+v", x.id, x.end)
	case c.Outcome != engine.Success:
	case x.got == 0:
		t.w.fail("attempt %d is said to have run, and has never had the lock", x.id)
	case binary.LittleEndian.Uint64(x.result[:]) != 0:
		t.w.fail("attempt %d ran, and found %#x", x.id, x.result)
	default:
		t.w.at(t.w.now+t.dice.Int64N(5*millisecond), x.release)
	}
}

// release gives the lock back, again and again until that has certainly run.
func (x *attempt) release() {
	u := x.u
	switch now := u.t.w.now; {
	case u.died != 0 || x.freed:
		return
	case now < u.t.holds:
		u.t.w.at(u.t.holds, x.release)
		return
	case u.t.w.nodes[0].foreign: // the owner sees that it is done
		if binary.LittleEndian.Uint64(u.t.lock()) == x.id {
			clear(u.t.lock())
		}
		x.freed = true
		return
	}
	r := &release{x: x}
	if op := u.post(wire.VerbCompare, r, x.id, 0, r.result[:]); op != nil {
		op.Publish()
		u.wake()
		return
	}
	u.t.w.at(u.t.w.now+millisecond, x.release)
}

type release struct {
	x      *attempt
	result [8]byte
}

// Complete implements engine.Completer.
func (r *release) Complete(_ *engine.Submission, c *engine.Completion, _ *engine.Later) {
	w := r.x.u.t.w
	if r.x.freed = c.Outcome == engine.Success; !r.x.freed {
		w.at(w.now+millisecond, r.x.release)
	}
}

// open returns an attempt that has not ended although its program lives, or nil.
func (t *waitTrial) open() *attempt {
	for _, x := range t.all {
		if x.ended == 0 && x.u.died == 0 {
			return x
		}
	}
	return nil
}

// disturb does one thing to the nodes, of a kind that belongs to the seed.
func (t *waitTrial) disturb(tb testing.TB, kind uint64) {
	target := t.w.nodes[0]
	reboot := func(n *node) {
		life := n.life
		n.crash()
		n.life = life + 4 // of the same age
		n.boot()
	}
	switch kind {
	case 1: // the endpoint is closed, and opened again
		for _, e := range target.engs {
			e.EndTargets(0)
		}
		target.wake(t.w.now)
	case 2: // the target restarts
		reboot(target)
		t.watch(tb)
	case 3: // the region is closed, and registered again
		r := target.regions[arrayRegion]
		r.deregister()
		target.wake(t.w.now)
		t.w.until(t.w.now+t.dice.Int64N(10*millisecond), func() bool { return false })
		r.register()
		t.watch(tb)
	case 4: // a program dies
		i := 1 + t.dice.IntN(len(t.users)-1)
		u := t.users[i]
		if u.died = t.w.now; u.guest != nil {
			u.guest.die()
		} else {
			reboot(u.n)
		}
		t.begin(t, tb, i, u.ordered)
	case 5:
		if g := t.users[1+t.dice.IntN(len(t.users)-1)].guest; g != nil {
			g.hold()
		}
	}
}

// Under faults of the network, of programs and of the target, each attempt at a lock
// that waits at the target gets it once or never, as its caller is told, those of a
// program in their order, and none of them waits for ever.
func TestWaitsUnderFaults(t *testing.T) { tryWaits(t, 15, 5, false, (*waitTrial).use) }

// So it is if the memory is another program's, which changes it without a word.
func TestWaitsInForeignMemory(t *testing.T) { tryWaits(t, 5, 5, true, (*waitTrial).use) }

// tryWaits runs seeds with programs whose life begin begins, and disturbs each seed in
// one of so many kinds. The memory is the target's own, or foreign.
func tryWaits(t *testing.T, seeds, kinds uint64, foreign bool, begin func(*waitTrial, testing.TB, int, bool)) {
	var ends [4]int
	for seed := range seeds {
		w := lab(plan{nodes: 4, delay: cableDelay, session: session.Config{GiveUp: 2e9},
			rates: rates{loss: 0.08, duplicate: 0.1, reorder: 0.1, corrupt: 0.02, replay: 0.1}})
		w.plan.tick, w.plan.leaps = 20*microsecond, true
		x := &waitTrial{w: w, dice: newDice(seed), users: make([]*lockUser, 4), begin: begin}
		for _, n := range w.nodes { // now with all extensions
			n.crash()
			for n.features()&wire.FeatureWaits == 0 {
				n.life++
			}
			n.foreign = foreign
			n.boot()
		}
		x.watch(t)
		for i := 1; i < len(w.nodes); i++ {
			begin(x, t, i, (seed+uint64(i))%3 > 0)
		}
		failed := func() bool { return w.failure != nil }
		for range 300 {
			if u := x.users[1+x.dice.IntN(3)]; x.dice.IntN(4) > 0 {
				u.try()
			}
			w.until(w.now+x.dice.Int64N(4*millisecond), failed)
			if x.dice.IntN(60) == 0 {
				x.disturb(t, seed%kinds)
			}
			x.stepGuests()
			x.free()
			x.overdue()
		}
		x.holds = w.now + toldBy + second // what is limited or let go ends meanwhile
		for end := w.now + 200*second; w.now < end && x.open() != nil && !failed(); x.free() {
			w.until(w.now+millisecond, failed)
			x.stepGuests()
			x.overdue()
		}
		if a := x.open(); a != nil && !failed() {
			w.fail("attempt %d waits for ever", a.id)
		}
		if !failed() {
			w.until(w.now+retires+10*second, failed)
			for _, e := range w.nodes[0].execs {
				if u := e.Usage(); u.Waiting != 0 {
					w.fail("the target has %d that wait at the end", u.Waiting)
				}
			}
		}
		if n := x.ends[engine.Unknown] + x.ends[engine.Restarted]; n > 0 && seed%kinds%5 == 0 && !failed() {
			w.fail("the outcome of %d attempts is unknown, though nothing excuses it", n)
		}
		if w.failure != nil {
			t.Fatalf("seed %d: %v", seed, w.failure)
		}
		for i, n := range x.ends {
			ends[i] += n
		}
	}
	t.Logf("%d succeeded, %d were not executed, of %d the outcome is unknown, %d met a restart",
		ends[0], ends[1], ends[2], ends[3])
	for i, n := range ends {
		if n == 0 && engine.Outcome(i) != engine.Unknown {
			t.Errorf("no attempt ended with outcome %d", i)
		}
	}
}
