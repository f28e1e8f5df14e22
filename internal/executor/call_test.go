// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// callee is a function whose calls end when the test says so.
type callee struct {
	refuses wire.Status
	asked   []string
	waiting []uint32 // that the function does not have yet
	ended   []call
	closed  bool
}

type call struct {
	psn    uint32
	reply  wire.Reply
	status wire.Status
}

func (c *callee) Ask(psn uint32, x *wire.Call) wire.Status {
	if c.refuses == wire.StatusOK {
		c.asked, c.waiting = append(c.asked, string(x.Request)), append(c.waiting, psn)
	}
	return c.refuses
}

// end ends a call with a reply.
func (c *callee) end(psn uint32, reply string) {
	c.waiting = slices.DeleteFunc(c.waiting, func(x uint32) bool { return x == psn })
	c.ended = append(c.ended, call{psn: psn, reply: wire.Reply{Length: uint32(len(reply)), Bytes: []byte(reply)}})
}

func (c *callee) Answered() (psn uint32, r *wire.Reply, s wire.Status, ok bool) {
	if len(c.ended) == 0 {
		return 0, nil, 0, false
	}
	x := &c.ended[0]
	return x.psn, &x.reply, x.status, true
}

func (c *callee) Drop() { c.ended = c.ended[1:] }

func (c *callee) Recall() {
	for _, psn := range c.waiting {
		c.ended = append(c.ended, call{psn: psn, status: wire.StatusNotExecuted})
	}
	c.waiting = nil
}

func (c *callee) Close() { c.closed = true }

// called is a session whose calls a callee answers.
func called(t *testing.T, features wire.Features) (*Executor, *Session, *callee, uint32) {
	t.Helper()
	x, err := New(&echo{}, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, p := &callee{}, params()
	p.Callee, p.Features = c, p.Features|wire.FeatureCalls|features
	return x, x.Begin(1, p, nil), c, session.FirstPSN(7)
}

// callOf returns the payload of a call.
func callOf(request string) []byte {
	var w wire.RecordWriter
	b := make([]byte, 200)
	w.Reset(b, len(b))
	place, _ := w.Call(&wire.Call{Most: 100}, len(request))
	copy(place, request)
	return b[:w.Len()]
}

// ask gives the session a call, and returns the verdict.
func ask(s *Session, psn, ack uint32, request string) session.Outcome {
	h := wire.Header{Type: wire.Request, Session: 1, Epoch: 7, PSN: psn, Ack: ack, Ops: 1}
	return s.Receive(2, &h, callOf(request), nil)
}

// told returns what is due: types, psns from first on, the flag BUSY, the sack, and
// replies.
func told(t *testing.T, s *Session, first uint32) string {
	t.Helper()
	var all []string
	out := make([]byte, 1500)
	for s.Due() {
		h, payload, reason := wire.Parse(out[:wire.Seal(out, s.Emit(out))])
		if reason != wire.ReasonOK {
			t.Fatal(reason)
		}
		text := fmt.Sprintf("%v %d", h.Type, int32(h.PSN-first))
		if h.Flags&wire.FlagBusy != 0 {
			text += " busy"
		}
		if h.Sack != 0 {
			text += fmt.Sprintf(" sack %b", h.Sack)
		}
		var r wire.Reply
		switch {
		case h.Type != wire.Response:
		case h.Flags&wire.FlagStatus != 0:
			text += " " + wire.Status(payload[3]).String()
		case r.ParseReply(payload, 100) != wire.ReasonOK:
			t.Fatalf("% x", payload)
		default:
			text += " " + string(r.Bytes)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// Without order the calls are answered as they end, each once. A copy of one that is
// under way goes nowhere, and a copy of one that has ended is answered with the same
// reply.
func TestCallsAnswered(t *testing.T) {
	x, s, c, first := called(t, wire.FeatureUnordered)
	for i, request := range []string{"a", "b", "c"} {
		if o := ask(s, first+uint32(i), first-1, request); o.Refused != wire.ReasonOK || o.Frames != 0 || o.Due {
			t.Fatalf("%s: %+v", request, o)
		}
	}
	ask(s, first, first-1, "a")
	want(t, "a copy of the first", told(t, s, first), "ack 0 busy sack 11")
	ask(s, first+2, first-1, "c")
	want(t, "a copy of the last", told(t, s, first), "ack 0 busy sack 11")
	c.end(first+1, "re b")
	if o := s.Retry(); o.Frames != 1 || o.Ops != 1 || !o.Due {
		t.Errorf("%+v", o)
	}
	want(t, "the second", told(t, s, first), "response 1 busy sack 11 re b")
	ask(s, first+1, first-1, "b")
	want(t, "a copy of the second", told(t, s, first), "response 1 busy sack 11 re b")
	c.end(first, "re a")
	s.Retry()
	want(t, "the first", told(t, s, first), "response 0 busy re a")
	c.end(first+2, "re c")
	s.Retry()
	want(t, "the last", told(t, s, first), "response 2 re c")
	want(t, "the function has had", fmt.Sprint(c.asked), "[a b c]")
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	s.Release()
	if err := x.Check(); err != nil || !c.closed {
		t.Error(err, c.closed)
	}
}

// In a session with order a call waits for the one before it.
func TestCallsInOrder(t *testing.T) {
	x, s, c, first := called(t, 0)
	ask(s, first, first-1, "a")
	ask(s, first+1, first-1, "b")
	want(t, "the function has", fmt.Sprint(c.asked), "[a]")
	c.end(first, "re a")
	s.Retry()
	want(t, "the function has", fmt.Sprint(c.asked), "[a b]")
	want(t, "the first", told(t, s, first), "response 0 busy re a")
	c.end(first+1, "re b")
	s.Retry()
	want(t, "the second", told(t, s, first), "response 1 re b")
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// The end of a session takes back what the function does not have. What it has counts as
// run, and is answered when it ends.
func TestCallsOfSessionThatEnds(t *testing.T) {
	x, s, c, first := called(t, wire.FeatureUnordered)
	for i, request := range []string{"a", "b", "c", "d"} {
		ask(s, first+uint32(i), first-1, request)
	}
	c.waiting = []uint32{first + 1} // it has the others
	ran := s.Freeze(3, first-1)
	if ran.PSN != first+3 || ran.Early != 0 {
		t.Errorf("ran: %d, %b", ran.PSN-first, ran.Early)
	}
	want(t, "the second", told(t, s, first), "response 1 busy sack 111 not executed")
	c.end(first+2, "re c")
	s.Retry()
	if got := told(t, s, first); !strings.Contains(got, "response 2 busy") || !strings.Contains(got, "re c") {
		t.Error(got)
	}
	if ask(s, first+4, first-1, "e"); len(c.asked) != 4 {
		t.Error("the function has had a request of a session that has ended")
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	s.Release()
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// What cannot be called is refused, and a full function says so.
func TestCallsRefused(t *testing.T) {
	_, s, c, first := called(t, wire.FeatureUnordered)
	c.refuses = wire.StatusNoRoom
	ask(s, first, first-1, "a")
	want(t, "a full function", told(t, s, first), "response 0 no room")
	h := wire.Header{Type: wire.Request, Session: 1, Epoch: 7, PSN: first + 1, Ack: first - 1, Ops: 2}
	if o := s.Receive(2, &h, callOf("b"), nil); o.Refused != wire.ReasonBadOps {
		t.Errorf("two records: %v", o.Refused)
	}
	x, err := New(&echo{}, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	if o := ask(x.Begin(1, params(), nil), first, first-1, "c"); o.Refused != wire.ReasonReservedVerb {
		t.Errorf("a session without a function: %v", o.Refused)
	}
}
