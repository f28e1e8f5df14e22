// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// submit posts an operation that fill describes: directly, or by the ring. What fill does
// not set makes it a fetch-add of 1 to word 0 of node 1.
func (c *cable) submit(p *Peer, direct bool, fill func(s *Submission)) *outcomes {
	c.t.Helper()
	e, ring, r := c.nodes[0].eng[0], c.nodes[0].ring, &outcomes{}
	whole := func(s *Submission) {
		s.Peer, s.Context, s.Key, s.Offset, s.Count, s.Result = p.ID(), r, 1, 0, 1, nil
		s.Verb, s.Opcode, s.Datatype = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64)
		s.SetOperands(words(1), nil)
		fill(s)
	}
	if direct && c.extend(ring, whole) {
		return r
	}
	var s *Submission
	if direct {
		s = e.Begin(ring)
	} else {
		s = ring.Claim()
	}
	if s == nil {
		c.t.Fatal("no submission is to be had")
	}
	whole(s)
	if direct {
		e.Submit(ring)
	} else {
		s.Publish()
	}
	return r
}

// extend posts an operation that fill describes by Extend, if that is possible.
func (c *cable) extend(ring *Ring, fill func(s *Submission)) bool {
	var like Submission
	fill(&like)
	var w Word
	if !w.Set(&like.Entry) || len(like.Result)%8 != 0 {
		return false
	}
	w.Cookie = like.Cookie
	if !c.nodes[0].eng[0].Extend(ring, &w, followerOf(&like)) {
		return false
	}
	c.extended++
	return true
}

// followerOf returns the part of an operation that a Word does not say.
func followerOf(s *Submission) Follower {
	f := Follower{Context: s.Context, Offset: s.Offset}
	if len(s.Result) > 0 {
		f.Result = (*[8]byte)(s.Result)
	}
	return f
}

// An operation behind an entry that is still being filled in is in no frame: it can be
// withdrawn, and never runs. The others do.
func TestWithdraw(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 9, 1)
	e, ring := c.nodes[0].eng[0], c.nodes[0].ring
	first := ring.Claim()
	withdrawn, kept := c.post(p, 0, 1), c.post(p, 1, 2)
	if e.Collect(ring) != 0 || p.Cancel(withdrawn) {
		t.Fatal("an entry was taken before the one in front of it was published")
	}
	if !ring.Withdraw(withdrawn) {
		t.Fatal("nothing was withdrawn")
	}
	if len(withdrawn.all) != 1 || withdrawn.all[0] != (Result{Outcome: NotExecuted, Reason: session.Cancelled}) {
		t.Errorf("the operation withdrawn: %+v", withdrawn.all)
	}
	if ring.Withdraw(withdrawn) || ring.Withdraw(nil) {
		t.Error("an operation was withdrawn a second time, or an entry that is not published")
	}
	first.Release()
	if r := c.done(kept); r.Outcome != Success {
		t.Errorf("the operation behind it: %+v", r)
	}
	if c.word(0) != 0 || c.word(1) != 2 || len(withdrawn.all) != 1 || !ring.Empty() {
		t.Errorf("words %d and %d, want 0 and 2; %d completions; ring empty: %t", c.word(0), c.word(1), len(withdrawn.all), ring.Empty())
	}
}

// words returns values as they lie in memory.
func words(v ...uint64) (b []byte) {
	for _, v := range v {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// add posts a fetch-add of 1 to a word directly, and returns where the result goes.
func (c *cable) add(p *Peer, word int) (*outcomes, []byte) {
	result := bytes.Repeat([]byte{0xa5}, 8)
	return c.submit(p, true, func(s *Submission) { s.Offset, s.Result = uint64(8*word), result }), result
}

// staged returns how many operations wait in a frame that has not left.
func (p *Peer) staged() int {
	if p.r.conn == nil {
		return 0
	}
	if g := p.r.conn.stage.cargo; g != nil {
		return g.ops()
	}
	return 0
}

// Operations run in the order in which they were posted, whatever kinds stand next to
// each other, whether directly or by the ring, and however narrow the window is.
func TestOrderOfAllKinds(t *testing.T) {
	extended := 0
	for _, window := range []int{1, 2, 8, 64} {
		for seed := range uint64(8) {
			rng := rand.New(rand.NewPCG(seed, uint64(window)))
			c := newCable(t, session.Config{Window: window, GiveUp: time.Hour})
			p := c.peer(ethernet())
			c.pass = func(int, []byte) bool { return rng.IntN(20) > 0 }
			type posted struct {
				r      *outcomes
				result []byte
			}
			var all []posted
			for range 400 {
				count := 1
				if rng.IntN(8) == 0 {
					count = 1 + rng.IntN(400)
				}
				x := posted{result: make([]byte, 8*count)}
				kind := rng.IntN(8)
				x.r = c.submit(p, rng.IntN(2) == 0, func(s *Submission) {
					s.Result, s.Count = x.result, uint32(count)
					s.SetOperands(words(slices.Repeat([]uint64{1}, count)...), nil)
					switch {
					case kind == 0:
						s.Flags |= FlagFence
					case kind == 1 && count > 1:
						s.SetExtents([]mr.Extent{{Key: 1, Offset: 0, Count: 1}, {Key: 1, Offset: 8, Count: uint32(count) - 1}})
					}
				})
				all = append(all, x)
				if rng.IntN(6) == 0 {
					c.step()
				}
			}
			for i, x := range all {
				if got := c.done(x.r); got.Outcome != Success {
					t.Fatalf("window %d, seed %d: operation %d: %+v", window, seed, i, got)
				}
				if v := binary.LittleEndian.Uint64(x.result); v != uint64(i) {
					t.Fatalf("window %d, seed %d: operation %d ran as number %d", window, seed, i, v)
				}
			}
			extended += c.extended
		}
	}
	if extended == 0 {
		t.Error("no operation was posted by Extend")
	}
}

// An operation that has not left is withdrawn whole: by a cancel, and by the end of the
// peer, of the engine, or of a name. The rest of the frame runs, once.
func TestStagedIsWithdrawn(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(c *cable, p, q *Peer, first *outcomes)
		fate [3]Outcome // of two operations by p, and one by q, another address of the same endpoint
		why  session.Reason
	}{
		"cancel":             {func(_ *cable, p, _ *Peer, first *outcomes) { p.Cancel(first) }, [3]Outcome{NotExecuted, Success, Success}, session.Cancelled},
		"the name is closed": {func(_ *cable, p, _ *Peer, _ *outcomes) { p.Close() }, [3]Outcome{NotExecuted, NotExecuted, Success}, session.ClosedHere},
		"both are closed":    {func(_ *cable, p, q *Peer, _ *outcomes) { p.Close(); q.Close() }, [3]Outcome{NotExecuted, NotExecuted, NotExecuted}, session.ClosedHere},
		"the engine closes":  {func(c *cable, _, _ *Peer, _ *outcomes) { c.nodes[0].eng[0].Close() }, [3]Outcome{NotExecuted, NotExecuted, NotExecuted}, session.ClosedHere},
		"a long stop":        {func(c *cable, _, _ *Peer, _ *outcomes) { c.now += int64(time.Hour) }, [3]Outcome{}, session.Alive},
		"the target closes":  {func(c *cable, _, _ *Peer, _ *outcomes) { c.nodes[1].eng[0].EndTargets(0); c.nodes[1].eng[0].Step() }, [3]Outcome{}, session.Alive},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			p, q := c.peer(ethernet()), c.peer(udp())
			c.write(p, 9, 1)
			c.write(q, 9, 1)
			for c.nodes[0].eng[0].Step() > 0 {
			}
			var r [3]*outcomes
			var result [3][]byte
			for i, by := range []*Peer{p, p, q} {
				r[i], result[i] = c.add(by, i)
			}
			if n := p.staged(); n != 3 {
				t.Fatalf("%d operations are in the frame, want 3", n)
			}
			test.end(c, p, q, r[0])
			for i := range r {
				got, ran := c.done(r[i]), uint64(0)
				want := Result{Outcome: test.fate[i]}
				if want.Outcome == Success {
					ran = 1
				} else {
					want.Reason = test.why
				}
				if got != want || c.word(i) != ran {
					t.Errorf("operation %d: %+v, ran %d times; want %+v, %d", i, got, c.word(i), want, ran)
				}
				if want.Outcome != Success && !bytes.Equal(result[i], bytes.Repeat([]byte{0xa5}, 8)) {
					t.Errorf("operation %d never ran, and its result was written", i)
				}
			}
			c.idle(time.Second)
			for i := range r {
				if len(r[i].all) != 1 {
					t.Errorf("operation %d completed %d times", i, len(r[i].all))
				}
			}
		})
	}
}

// Operations that were put back from the frame come before those that wait in the
// queue.
func TestStagedGoesBeforeTheQueue(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 9, 1)
	first, _ := c.add(p, 0)
	second, one := c.add(p, 0)
	many := make([]byte, 24)
	array := c.submit(p, true, func(s *Submission) {
		s.Count, s.Result = 3, many
		s.SetOperands(words(1, 1, 1), nil)
	})
	last, two := c.add(p, 0)
	if !p.Cancel(first) || p.staged() != 0 {
		t.Fatalf("%d operations are in the frame after a cancel, want 0", p.staged())
	}
	for i, r := range []*outcomes{second, array, last} {
		if got := c.done(r); got.Outcome != Success {
			t.Errorf("operation %d: %+v", i, got)
		}
	}
	if !bytes.Equal(one, words(0)) || !bytes.Equal(many, words(1, 0, 0)) || !bytes.Equal(two, words(2)) {
		t.Errorf("results %x, %x, %x: not in the order posted", one, many, two)
	}
}

// Few frames in flight send a frame that is not full in the next round; with many, it
// waits for company until one of them is answered.
func TestPartialFrame(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Hour, StaticWindow: true})
	p := c.peer(ethernet())
	c.write(p, 9, 1)
	e := c.nodes[0].eng[0]
	c.pass = func(to int, _ []byte) bool { return to == 1 }
	var all []*outcomes
	for i := range busy {
		r, _ := c.add(p, 0)
		all = append(all, r)
		if e.Step(); p.staged() != 0 || p.r.conn.ini.InFlight() != i+1 {
			t.Fatalf("%d operations stay in the frame, with %d frames in flight", p.staged(), p.r.conn.ini.InFlight())
		}
	}
	for i := range 3 {
		r, _ := c.add(p, 0)
		all = append(all, r)
		if e.Step(); p.staged() != i+1 || p.r.conn.ini.InFlight() != busy {
			t.Fatalf("%d operations in the frame, want %d; %d frames in flight, want %d", p.staged(), i+1, p.r.conn.ini.InFlight(), busy)
		}
	}
	c.pass = nil
	for i, r := range all {
		if got := c.done(r); got.Outcome != Success {
			t.Errorf("operation %d: %+v", i, got)
		}
	}
	if c.word(0) != uint64(len(all)) {
		t.Errorf("%d ran, want %d", c.word(0), len(all))
	}
}

// An answer to a frame of simple operations that does not fit it is not believed, and
// nothing of it is.
func TestLiesAboutSimpleOperations(t *testing.T) {
	const count = 4
	for name, lie := range map[string]func(h *wire.Header, values []byte) []byte{
		"too short":          func(_ *wire.Header, v []byte) []byte { return v[:len(v)-8] },
		"cut within a value": func(_ *wire.Header, v []byte) []byte { return v[:len(v)-3] },
		"too long":           func(_ *wire.Header, v []byte) []byte { return append(v, words(7)...) },
		"empty":              func(*wire.Header, []byte) []byte { return nil },
		"a record too few":   func(h *wire.Header, v []byte) []byte { h.Ops--; return v[:len(v)-8] },
		"a record too many":  func(h *wire.Header, v []byte) []byte { h.Ops++; return append(v, words(7)...) },
		"a status without room": func(h *wire.Header, v []byte) []byte {
			h.Flags |= wire.FlagStatus
			return append([]byte{1, 0, 0, 1}, v...)
		},
		"a status of no record": func(h *wire.Header, v []byte) []byte {
			h.Flags |= wire.FlagStatus
			return append([]byte{1, 0, count, 1}, v[8:]...)
		},
		"an empty status list": func(h *wire.Header, v []byte) []byte {
			h.Flags |= wire.FlagStatus
			return append([]byte{0, 0, 0, 0}, v...)
		},
		"a status list too long": func(h *wire.Header, v []byte) []byte { h.Flags |= wire.FlagStatus; return []byte{200, 0, 0, 1} },
		"a status list, cut off": func(h *wire.Header, v []byte) []byte { h.Flags |= wire.FlagStatus; return []byte{1} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			p := c.peer(ethernet())
			c.write(p, 9, 1)
			lied := 0
			c.pass = func(to int, packet []byte) bool {
				h, _ := headerOf(packet)
				if to != 0 || h.Type != wire.Response {
					return true
				}
				frame, _, _ := wire.Decap(packet)
				_, payload, _ := wire.Parse(frame)
				values := lie(&h, slices.Clone(payload[:8*count]))
				tmpl, _ := wire.NewTemplate(wire.Link{Local: worldMACs[1], Remote: worldMACs[0]})
				b := make([]byte, 2048)
				h.Put(b[tmpl.Len():])
				n := wire.Seal(b[tmpl.Len():], wire.HeaderLen+copy(b[tmpl.Len()+wire.HeaderLen:], values))
				c.deliver(0, b[:tmpl.Put(b, n)])
				lied++
				return false
			}
			var r [count]*outcomes
			var result [count][]byte
			for i := range r {
				r[i], result[i] = c.add(p, 0)
			}
			for i := range r {
				if got := c.done(r[i]); got.Outcome != Unknown || got.Reason != session.ProtocolError {
					t.Errorf("operation %d: %+v, want unknown, %v", i, got, session.ProtocolError)
				}
				if !bytes.Equal(result[i], bytes.Repeat([]byte{0xa5}, 8)) {
					t.Errorf("operation %d: a result of the lie was written: %x", i, result[i])
				}
			}
			if lied != 1 {
				t.Errorf("%d lies were told, want one: the frame was not one", lied)
			}
		})
	}
}

// Operations that fill frames before the next round do not go into a session that the
// target has forgotten meanwhile: whoever commits a frame looks at the clock.
func TestFullFramesAfterALongPause(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 0)
	before := p.r.conn
	c.now += int64(time.Hour)
	posted := make([]*outcomes, 400) // more than two frames
	for i := range posted {
		posted[i], _ = c.add(p, 0)
	}
	for i, r := range posted {
		if got := c.done(r); got.Outcome != Success {
			t.Fatalf("operation %d: %+v", i, got)
		}
	}
	if p.r.conn == before || c.word(0) != uint64(len(posted)) {
		t.Errorf("the sum is %d, want %d; the same session: %t", c.word(0), len(posted), p.r.conn == before)
	}
}
