// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// lingering is a cable on which no request has arrived yet of those that node 0 has sent,
// and whose node 1 counts how often it looks at its port.
type lingering struct {
	*cable
	p       *Peer
	at      *Engine     // of node 1
	waiting [][]byte    // requests on their way
	posted  []*outcomes // a request each
	looks   int
	clock   int64 // how much time a look takes
	each    int   // how many requests arrive between two looks
}

func newLingering(t *testing.T, posts int) *lingering {
	c := newCable(t, session.Config{Features: wire.FeatureDelays, StaticWindow: true})
	l := &lingering{cable: c, p: c.peer(ethernet()), clock: 100, each: 1}
	c.write(l.p, 0, 1)
	c.idle(1e6)
	c.pass = func(to int, packet []byte) bool {
		if frame, _, _ := wire.Decap(packet); to == 1 && wire.Type(frame[0]&15) == wire.Request {
			l.waiting = append(l.waiting, packet)
			return false
		}
		return true
	}
	for i := range posts {
		l.posted = append(l.posted, c.post(l.p, i, uint64(i)+1))
		c.nodes[0].eng[0].collect()
		l.p.r.conn.commit() // a frame of its own
	}
	c.nodes[0].eng[0].Step()
	l.at = c.nodes[1].eng[0]
	c.nodes[1].ports[0].look = func() {
		l.looks++
		if c.now += l.clock; l.looks > 1 {
			l.arrive(l.each)
		}
	}
	return l
}

// arrive lets the next n requests arrive.
func (l *lingering) arrive(n int) {
	for ; n > 0 && len(l.waiting) > 0; n-- {
		l.deliver(1, l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// round lets one request arrive, and node 1 make a round, and returns the number of acks.
func (l *lingering) round() int {
	l.arrive(1)
	l.looks = 0
	before := len(l.seen[0])
	l.at.Step()
	return len(l.seen[0]) - before
}

// done returns how many operations have succeeded.
func (l *lingering) succeeded() (n int) {
	l.nodes[0].eng[0].Step()
	for _, r := range l.posted {
		if len(r.all) > 0 && r.all[0].Outcome == Success {
			n++
		}
	}
	return n
}

// One ack serves eight requests that come one after another, and a lone one is answered
// without another look at the port.
func TestAckServesEight(t *testing.T) {
	l := newLingering(t, 17)
	for _, want := range []struct{ acks, looks, done int }{{1, 8, 8}, {1, 8, 16}, {1, 1, 17}} {
		if acks := l.round(); acks != want.acks || l.looks != want.looks {
			t.Errorf("%d acks after %d looks, want %+v", acks, l.looks, want)
		}
		if n := l.succeeded(); n != want.done {
			t.Errorf("%d operations succeeded, want %d", n, want.done)
		}
	}
	if n := l.nodes[1].counted(PacketsReceived) - l.nodes[1].counted(Hellos); n < 18 {
		t.Errorf("%d packets counted, want 18 requests", n)
	}
}

// If nothing follows, the ack leaves before the round ends: nobody may make another one.
// The pause ends with the clock, or, if that stands still, with the number of looks.
func TestPauseEndsWithAck(t *testing.T) {
	for _, clock := range []int64{100, 0} {
		l := newLingering(t, 4)
		l.clock, l.each = clock, 0
		want := mostLooks + 1
		if clock > 0 {
			want = int(pause/clock) + 2
		}
		for i := range 4 {
			if acks := l.round(); acks != 1 || l.succeeded() != i+1 {
				t.Fatalf("clock %d: %d acks, %d operations succeeded, want 1, %d", clock, acks, l.succeeded(), i+1)
			}
			if i == 3 {
				want = 1 // the last one
			}
			if l.looks != want {
				t.Errorf("clock %d, request %d: %d looks, want %d", clock, i, l.looks, want)
			}
		}
	}
}

// A round ends at once if there is something else to do.
func TestNoPauseWithOtherWork(t *testing.T) {
	for name, work := range map[string]func(l *lingering){
		"a post":         func(l *lingering) { l.nodes[1].ring.Claim().Publish() },
		"a call":         func(l *lingering) { l.at.Call(func() {}) },
		"an alert":       func(l *lingering) { l.at.Alert() },
		"another packet": func(l *lingering) { l.deliver(1, []byte{1}) },
	} {
		l := newLingering(t, 4)
		l.each = 0
		work(l)
		if acks := l.round(); acks != 1 || l.looks != 1 {
			t.Errorf("%s: %d acks after %d looks, want 1 after 1", name, acks, l.looks)
		}
	}
}

// A session without the feature has no marked requests: one is refused as a whole.
func TestDelayWithoutFeature(t *testing.T) {
	c := newCable(t, session.Config{})
	at := &target{e: c.nodes[1].eng[0]}
	if !at.receive(&wire.Header{Type: wire.Request, Flags: wire.FlagDelay, Ops: 1}, nil) || at.e.count[Invalid] != 1 { // to run it would panic
		t.Errorf("%d frames are invalid, want 1", at.e.count[Invalid])
	}
}

// More requests follow if operations wait for nothing but the window.
func TestFollows(t *testing.T) {
	c := newCable(t, session.Config{Features: wire.FeatureDelays})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	f := &flight{}
	f.Verb, f.Count = wire.VerbWrite, 4
	if p.r.conn.follows() {
		t.Error("none waits: true, want false")
	}
	p.r.head = f
	if !p.r.conn.follows() {
		t.Error("one waits: false, want true")
	}
	if f.Flags = FlagFence; p.r.conn.follows() {
		t.Error("one waits behind a fence: true, want false")
	}
	f.Flags, f.Stream = FlagStream, &Stream{}
	if p.r.conn.follows() {
		t.Error("one without its next part: true, want false")
	}
}

// What comes in a pause is not as old as the round.
func TestPauseTakesTime(t *testing.T) {
	l := newLingering(t, 4)
	l.each = 0
	if l.round(); l.looks == 1 {
		t.Fatal("there was no pause")
	}
	if l.at.look(); l.at.now != l.now {
		t.Errorf("the time after the pause is %d, want %d", l.at.now, l.now)
	}
}

// An engine whose thread steps others too makes no pause.
func TestNoPauseInATeam(t *testing.T) {
	l := newLingering(t, 4)
	l.each = 0
	NewTeam([]*Engine{l.at, l.nodes[1].eng[1]}, nil)
	if acks := l.round(); acks != 1 || l.looks != 1 {
		t.Errorf("%d acks after %d looks, want 1 after 1", acks, l.looks)
	}
}
