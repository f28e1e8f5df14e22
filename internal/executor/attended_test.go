// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// owner is the program that executes frames: it has what was handed over, and answers as
// the test says.
type owner struct {
	away, full, former bool
	gone               bool
	name               uint64
	knows              int // of frames that a former one has handed over
	has                []string
	said               []string // answers that were not taken
	closed, moved      bool
}

func (o *owner) Attends() bool { return !o.away }
func (o *owner) Alone() bool   { return !o.former }
func (o *owner) Gone() bool    { return o.gone }

func (o *owner) Hand(_ uint32, payload []byte, _ int) bool {
	if o.full {
		return false
	}
	o.has = append(o.has, string(payload))
	return true
}

func (o *owner) Answered() bool              { return len(o.said) > 0 }
func (o *owner) Next() (wire.Status, []byte) { return wire.StatusOK, []byte(o.said[0]) }
func (o *owner) Take()                       { o.said = o.said[1:] }
func (o *owner) Close()                      { o.closed = true }
func (o *owner) State() uint64               { return o.name }
func (o *owner) Restore(name uint64) int     { o.name = name; return o.knows }
func (o *owner) Detach()                     { o.moved = true }

// attended is a session whose attendant is an owner.
func attended(t *testing.T) (*Executor, *Session, *echo, *owner, uint32) {
	t.Helper()
	m, o := &echo{}, &owner{name: 77}
	x, err := New(m, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := params()
	p.Attendant = o
	return x, x.Begin(1, p, nil), m, o, session.FirstPSN(7)
}

// sent returns everything that is due: types, psns from the first one on, and payloads.
func sent(t *testing.T, s *Session, first uint32) (all []string) {
	t.Helper()
	out := make([]byte, 1500)
	for s.Due() {
		h, payload, reason := wire.Parse(out[:wire.Seal(out, s.Emit(out))])
		if reason != wire.ReasonOK {
			t.Fatal(reason)
		}
		text := fmt.Sprintf("%v %d", h.Type, h.PSN-first)
		if h.Flags&wire.FlagBusy != 0 {
			text += " busy"
		}
		if h.Sack != 0 {
			text += " sack"
		}
		if h.Type == wire.Response {
			text += " " + string(payload[:4])
		}
		all = append(all, text)
	}
	return all
}

func (o *owner) check(t *testing.T, what string, has int, m *echo, ran int) {
	t.Helper()
	if len(o.has) != has || m.ran != ran {
		t.Fatalf("%s: handed over %q, %d ran; want %d and %d", what, o.has, m.ran, has, ran)
	}
}

// A frame for memory elsewhere is handed over once, whatever comes meanwhile; it is
// answered from the cache afterwards. What can run here waits behind it.
func TestHandOver(t *testing.T) {
	x, s, m, o, first := attended(t)
	if v := request(s, first, first-1, "here", nil).Verdict; v != session.Execute {
		t.Fatal(v)
	}
	_ = sent(t, s, first)
	if got := request(s, first+1, first, "far1", nil); got.Verdict != session.NoPlace || !got.Waits || got.Due {
		t.Fatalf("%+v", got)
	}
	o.check(t, "far", 1, m, 1)
	if got := request(s, first+1, first, "far1", nil); got.Verdict != session.NoPlace || !got.Due {
		t.Fatalf("a copy: %+v", got)
	}
	if all := sent(t, s, first); len(all) != 1 || all[0] != "ack 1 busy" {
		t.Fatalf("a copy is answered with %q", all)
	}
	request(s, first+2, first, "here", nil)
	request(s, first+3, first, "far3", nil)
	if all := sent(t, s, first); len(all) != 0 {
		t.Fatalf("frames in order are answered with %q", all)
	}
	request(s, first+5, first, "late", nil)
	if all := sent(t, s, first); len(all) != 1 || all[0] != "nak 1 busy sack" {
		t.Fatalf("a missing frame is answered with %q", all)
	}
	o.check(t, "behind", 1, m, 1)
	s.Retry()
	o.check(t, "without an answer", 1, m, 1)
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	o.said = []string{"one "}
	if got := s.Retry(); got.Frames != 2 || !got.Waits {
		t.Fatalf("an answer: %+v", got)
	}
	o.check(t, "answered", 2, m, 3)
	if all := sent(t, s, first); len(all) != 2 || all[0] != "response 1 busy sack one " || all[1] != "response 2 busy sack here" {
		t.Fatalf("answers %q", all)
	}
	if v := request(s, first+1, first, "far1", nil).Verdict; v != session.Duplicate {
		t.Fatalf("a copy of what was answered: %v", v)
	}
	o.check(t, "again", 2, m, 3)
	s.Release()
	if u := x.Usage(); u.Answers.Lent+u.Holds.Lent != 0 || !o.closed {
		t.Errorf("after the end: %+v", u)
	}
}

// Frames are handed over side by side, up to a bound, and answered in their order.
func TestHandOverMany(t *testing.T) {
	x, s, m, o, first := attended(t)
	for i := range uint32(12) {
		request(s, first+i, first-1, fmt.Sprintf("far%x", i), nil)
	}
	o.check(t, "at most", 8, m, 0)
	o.said = []string{"a0  ", "a1  ", "a2  "}
	if got := s.Retry(); got.Frames != 3 {
		t.Fatalf("%+v", got)
	}
	o.check(t, "three more", 11, m, 3)
	if all := sent(t, s, first); len(all) != 3 || all[2] != "response 2 busy a2  " {
		t.Fatalf("%q", all)
	}
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		o.said = append(o.said, "more")
	}
	s.Retry()
	if o.check(t, "all", 12, m, 11); len(o.said) != 1 {
		t.Fatalf("answers left: %q", o.said)
	}
	if got := s.Retry(); got.Waits || m.ran != 12 {
		t.Fatalf("%+v, %d ran", got, m.ran)
	}
}

// While there is no room, and while a former session of the pair has something with the
// owner, frames wait here.
func TestHandOverWaits(t *testing.T) {
	_, s, m, o, first := attended(t)
	o.full = true
	if got := request(s, first, first-1, "far", nil); !got.Waits || got.Verdict != session.NoPlace {
		t.Fatalf("%+v", got)
	}
	s.Retry()
	o.full = false
	s.Retry()
	o.check(t, "room", 1, m, 0)
	o.said = []string{"done"}
	s.Retry()
	o.former = true
	if got := request(s, first+1, first-1, "here", nil); !got.Waits {
		t.Fatalf("%+v", got)
	}
	o.check(t, "not alone", 1, m, 1)
	request(s, first+2, first-1, "far", nil)
	o.former = false
	s.Retry()
	o.check(t, "alone", 2, m, 2)
	o.away = true
	if got := request(s, first+3, first-1, "far", nil); got.Verdict != session.Held {
		t.Fatalf("%+v", got)
	}
	o.said = []string{"done"}
	s.Retry() // the owner executes nothing any more: this memory says that it has no such key
	o.check(t, "away", 2, m, 4)
}

// What was handed over and not answered ran at most once: a session that ends says that
// no frame behind it ran, and nothing of that frame. If an answer comes after all, it
// leaves.
func TestHandOverEnds(t *testing.T) {
	_, s, m, o, first := attended(t)
	request(s, first, first-1, "far", nil)
	request(s, first+1, first-1, "far", nil)
	request(s, first+2, first-1, "here", nil)
	if ran := s.Freeze(3, s.Acked()); ran.PSN != first+1 || ran.Early != 0 {
		t.Fatalf("%+v, want frames up to %d", ran, first+1)
	}
	o.check(t, "frozen", 2, m, 0)
	o.said = []string{"one "}
	if got := s.Retry(); got.Frames != 1 || !got.Due {
		t.Fatalf("%+v", got)
	}
	if all := sent(t, s, first); len(all) != 1 || all[0] != "response 0 busy one " {
		t.Fatalf("%q", all)
	}
	s.Shutdown(wire.ResetClosed)
	out := make([]byte, 1500)
	_, payload, _ := wire.Parse(out[:wire.Seal(out, s.Emit(out))])
	var r wire.ResetMsg
	if r.Parse(payload); r.PSN != first+2 {
		t.Fatalf("the reset says that frames from %d on never ran, want %d", r.PSN-first, 2)
	}
	s.Release()
}

// What the owner had that has died keeps no buffers once its session has ended: other
// sessions of the peer need them. That it may have run is still known.
func TestHandOverDies(t *testing.T) {
	for _, after := range []bool{false, true} {
		x, s, _, o, first := attended(t)
		request(s, first, first-1, "far0", nil)
		request(s, first+1, first-1, "far1", nil)
		if after { // the session, for the owner leaves its endpoint first
			s.Freeze(3, s.Acked())
			s.Shutdown(wire.ResetClosed)
		}
		if h := x.Usage().Holds.Lent; h != 2 {
			t.Fatalf("%d frames are kept: want those that are handed over", h)
		}
		o.gone = true
		s.Freeze(3, s.Acked())
		s.Shutdown(wire.ResetClosed)
		if u := x.Usage(); u.Holds.Lent != 0 || u.Answers.Lent != 0 || u.Handed != 0 {
			t.Errorf("%+v: want nothing kept", u)
		}
		if ran := s.Ran(); ran.PSN != first+1 {
			t.Errorf("%+v may have run: want up to %d", ran, first+1)
		}
		if err := x.Check(); err != nil {
			t.Error(err)
		}
		if s.Release(); !o.closed || x.Check() != nil {
			t.Errorf("closed %t, %v", o.closed, x.Check())
		}
	}
}

// Another process waits for the answers, and hands nothing over again.
func TestHandOverMoves(t *testing.T) {
	_, s, _, o, first := attended(t)
	for i := range uint32(3) {
		request(s, first+i, first-1, "far", nil)
	}
	request(s, first+3, first-1, "here", nil)
	state, err := s.State(5)
	if err != nil {
		t.Fatal(err)
	}
	if s.Detach(); !o.moved || o.closed {
		t.Fatal("the session has not let go of the owner, or has told it of its end")
	}
	_, next, _, now, _ := attended(t)
	now.name = 0
	if err := next.Restore(state, 6); err == nil {
		t.Fatal("restored, though the owner knows of no frame")
	}
	next.Detach()
	x, next, m, now, _ := attended(t)
	now.name, now.knows = 0, 3
	if err := next.Restore(state, 6); err != nil {
		t.Fatal(err)
	}
	if now.check(t, "moved", 0, m, 0); now.name != 77 {
		t.Fatalf("name %d", now.name)
	}
	request(next, first+1, first-1, "far", nil)
	now.said = []string{"a", "b", "c"}
	next.Retry()
	now.check(t, "answered", 0, m, 4)
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	if err := func() error { _, s, _, _, _ := attended(t); s.attendant = nil; return s.Restore(state, 6) }(); err == nil {
		t.Error("a session with frames that are handed over moves to where nobody executes them")
	}
}

// Nothing keeps the regions of a frame that was looked at and does not run: whoever
// closes one waits for as long.
func TestLookedAtAndLeft(t *testing.T) {
	m := &echo{}
	x, err := New(m, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := params()
	p.Features, p.Places, p.Attendant = wire.FeatureNotices, &places{}, &owner{}
	s := x.Begin(1, p, nil)
	if o := request(s, session.FirstPSN(7), session.FirstPSN(7)-1, "n", nil); o.Verdict != session.NoPlace || o.Frames != 0 || m.left == 0 {
		t.Errorf("%+v, left %d times", o, m.left)
	}
}
