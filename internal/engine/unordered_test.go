// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// gap is a session without order in which the frame of the first of three additions of 1
// never arrives; the second has no result, the third one has. All are to words of their
// own. If it is mute, no answer arrives either.
type gap struct {
	*cable
	p    *Peer
	adds [3]*outcomes
	lost [][]byte // the copies of the first frame
	ran  [][]byte // the first copies of the others
}

func newGap(t *testing.T, mute bool) *gap {
	c := newCable(t, session.Config{Features: wire.FeatureUnordered, GiveUp: time.Second})
	c.nodes[0].eng[0].origin.unordered = true
	g := &gap{cable: c, p: c.peer(ethernet())}
	c.write(g.p, 8, 1)
	psn := session.FirstPSN(g.p.r.conn.ini.Identity().Epoch) + 1
	c.pass = func(to int, packet []byte) bool {
		h, ok := headerOf(packet)
		switch {
		case to == 0 && mute:
			return false
		case to != 1 || !ok || h.Type != wire.Request:
		case h.PSN == psn:
			g.lost = append(g.lost, slices.Clone(packet))
			return false
		case h.PSN == psn+uint32(len(g.ran))+1:
			g.ran = append(g.ran, slices.Clone(packet))
		}
		return true
	}
	for i := range g.adds {
		g.adds[i] = g.add(wire.VerbAtomic+wire.Verb(i/2), i, 1)
		for range 3 { // a frame of its own
			c.step()
		}
	}
	return g
}

// add has 1 added to a number of words.
func (g *gap) add(verb wire.Verb, word, count int) *outcomes {
	r := &outcomes{}
	op := g.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = g.p.ID(), r, 1, uint64(8*word), uint32(count)
	op.Verb, op.Opcode, op.Datatype, op.Flags, op.Result = verb, uint8(atomic.Sum), uint8(atomic.Uint64), 0, nil
	if verb != wire.VerbAtomic {
		op.Result = make([]byte, 8*count)
	}
	op.SetOperands(bytes.Repeat(binary.LittleEndian.AppendUint64(nil, 1), count), nil)
	op.Publish()
	return r
}

// expect fails the test unless words 0, 1 and 2 have these values.
func (g *gap) expect(when string, want ...uint64) {
	g.t.Helper()
	if got := []uint64{g.word(0), g.word(1), g.word(2)}; !slices.Equal(got, want) {
		g.t.Errorf("%s the words are %d, want %d", when, got, want)
	}
}

// A frame that is lost holds up no operation but its own. Each runs once, though all
// copies of all frames come again.
func TestUnorderedHoldsUpNothing(t *testing.T) {
	g := newGap(t, false)
	for _, add := range g.adds[1:] {
		if r := g.done(add); r.Outcome != Success {
			t.Errorf("behind the gap: %+v", r)
		}
	}
	if len(g.adds[0].all) > 0 {
		t.Errorf("in the gap: %+v, want nothing yet", g.adds[0].all)
	}
	g.expect("with a gap", 0, 1, 1)
	again := func() {
		for _, packet := range slices.Concat(g.ran, g.lost, g.ran) {
			g.deliver(1, packet)
			g.step()
		}
	}
	g.pass = nil
	again()
	if r := g.done(g.adds[0]); r.Outcome != Success {
		t.Errorf("in the gap: %+v", r)
	}
	g.idle(100 * time.Millisecond) // the answers are forgotten
	again()
	g.expect("in the end", 1, 1, 1)
	if n := g.nodes[1].counted(SessionsAccepted); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

// A node that does not know sessions without order keeps the order.
func TestUnorderedWithOldNode(t *testing.T) {
	for i, name := range []string{"initiator", "target"} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{Features: wire.FeatureUnordered})
			c.cfg.Features = 0
			c.nodes[i].boot()
			c.nodes[0].eng[0].origin.unordered = true
			p := c.peer(ethernet())
			c.write(p, 0, 1)
			if f := p.r.conn.ini.Features(); f != 0 {
				t.Errorf("features %#x, want none", f)
			}
		})
	}
}

// What was in flight behind a gap when the path broke becomes known: the session that
// follows reports what ran. Nothing else of the old one ever runs.
func TestUnorderedGiveUp(t *testing.T) {
	for name, test := range map[string]struct {
		forget bool // the target has no room for the old session
		want   [3]Outcome
	}{
		"answers kept":    {false, [3]Outcome{NotExecuted, Success, Success}},
		"answers dropped": {true, [3]Outcome{NotExecuted, Unknown, Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGap(t, true)
			var laters [3]*Later
			for i, add := range g.adds {
				r := g.done(add)
				if r.Outcome != Unknown || r.Later == nil {
					t.Fatalf("operation %d in a partition: %+v", i, r)
				}
				laters[i] = r.Later
			}
			g.expect("after the partition", 0, 1, 1)
			if test.forget {
				for _, x := range g.nodes[1].eng[0].table.snapshot() {
					x.(*target).remove(endedSilent)
				}
			}
			g.pass = nil
			g.write(g.p, 8, 2)
			for i, l := range laters {
				if r := g.known(l); r.Outcome != test.want[i] {
					t.Errorf("operation %d: %+v, want fate %d", i, r, test.want[i])
				}
			}
			for _, packet := range slices.Concat(g.lost, g.ran) {
				g.deliver(1, packet)
			}
			g.idle(10 * time.Millisecond)
			g.expect("in the end", 0, 1, 1)
		})
	}
}

// An endpoint that closes tells which operations behind a gap ran.
func TestUnorderedTargetCloses(t *testing.T) {
	g := newGap(t, true)
	g.pass = nil
	g.nodes[1].eng[0].EndTargets(0)
	for i, want := range []Outcome{NotExecuted, Success, Success} {
		if r := g.done(g.adds[i]); r.Outcome != want {
			t.Errorf("operation %d: %+v, want fate %d", i, r, want)
		}
	}
	g.expect("in the end", 0, 1, 1)
}

// A fence waits for all that was posted before it, and what follows waits with it.
func TestUnorderedFence(t *testing.T) {
	g := newGap(t, false)
	fenced := &outcomes{}
	op := g.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Count, op.Offset = g.p.ID(), fenced, 1, 1, 0
	op.Verb, op.Opcode, op.Datatype, op.Flags, op.Result = wire.VerbFetch, wire.OpRead, uint8(atomic.Uint64), FlagFence, make([]byte, 8)
	result := op.Result
	op.Publish()
	after := g.add(wire.VerbAtomic, 0, 1)
	g.idle(20 * time.Millisecond)
	if len(fenced.all) > 0 || len(after.all) > 0 {
		t.Errorf("%+v at the fence, %+v after it, while an earlier one is at %+v", fenced.all, after.all, g.adds[0].all)
	}
	g.pass = nil
	if r := g.done(fenced); r.Outcome != Success || len(g.adds[0].all) != 1 || result[0] == 0 {
		t.Errorf("at the fence: %+v, value %d; before it: %+v", r, result[0], g.adds[0].all)
	}
	g.done(after)
	g.expect("in the end", 2, 1, 1)
}

// An array completes when all its frames have run, in whatever order.
func TestUnorderedArray(t *testing.T) {
	g := newGap(t, false)
	g.pass = nil
	g.done(g.adds[0])
	requests, lost := 0, 0
	g.pass = func(to int, packet []byte) bool {
		h, ok := headerOf(packet)
		if to != 1 || !ok || h.Type != wire.Request {
			return true
		}
		if requests++; requests%5 == 2 {
			lost++
			return false
		}
		return true
	}
	const words = 4000
	array := g.add(wire.VerbFetch, 100, words)
	if r := g.done(array); r.Outcome != Success || lost < 3 {
		t.Errorf("%+v, %d frames lost", r, lost)
	}
	for i := range words {
		if g.word(100+i) != 1 {
			t.Fatalf("word %d of the array is %d, want 1", i, g.word(100+i))
		}
	}
	if len(array.all) != 1 {
		t.Errorf("%d completions, want 1", len(array.all))
	}
}
