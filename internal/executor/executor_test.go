// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"bytes"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// echo answers a payload with itself; an empty one succeeds without a result, and one
// that begins with 0xff is malformed. One that begins with 'm' belongs to
// wire.FeatureMemory.
type echo struct {
	ran, left int
	payload   []byte // of the frame checked last
	notice    bool   // it ends in a notice, as each that begins with 'n' does
}

func (m *echo) Present(uint32)           {}
func (m *echo) Serve(waiting.Session)    {}
func (m *echo) Refused() *wire.RefusedOp { return &wire.RefusedOp{} }

func (m *echo) Touched() (_, _, _, _ int) { return 0, 0, 0, 0 }

func (m *echo) Check(payload []byte, _ int) (uses wire.Features, reason wire.Reason) {
	if len(payload) > 0 && payload[0] == 0xff {
		return 0, wire.ReasonBadPayload
	}
	m.payload, m.notice = payload, len(payload) > 0 && payload[0] == 'n'
	switch {
	case m.notice:
		uses = wire.FeatureNotices
	case len(payload) > 0 && payload[0] == 'm':
		uses = wire.FeatureMemory
	}
	return uses, wire.ReasonOK
}

func (m *echo) Execute(resp []byte, _ uint32) (n int, flags uint8) {
	m.ran++
	return copy(resp, m.payload), 0
}

// Foreign is true of a payload that begins with "far".
func (m *echo) Foreign(int) bool { return bytes.HasPrefix(m.payload, []byte("far")) }

func (m *echo) Answer(resp []byte, _ uint32, said wire.Answers) (n int, flags uint8) {
	m.ran++
	_, result := said.Next()
	return copy(resp, result), 0
}

func (m *echo) Streak() uint32 { return uint32(m.ran) }

// Notice tells the number of the frame; the operations of one that ends in "bad" failed.
func (m *echo) Notice() (wire.Notice, bool) {
	return wire.Notice{Data: uint64(m.ran)}, m.notice && !bytes.HasSuffix(m.payload, []byte("bad"))
}

func (m *echo) Leave() { m.left++ }

// params are those of a session with epoch 7.
func params() session.TargetParams {
	return session.TargetParams{Local: wire.NewSessionID(0, 0, 1, 1), Remote: 9, Epoch: 7, MaxFrame: 1500, Window: 64}
}

// asked is a session with a memory, and with the psn of its first frame.
func asked(t *testing.T, buffers int) (*Executor, *Session, *echo, uint32) {
	t.Helper()
	m := &echo{}
	x, err := New(m, 1500, buffers)
	if err != nil {
		t.Fatal(err)
	}
	s := x.Begin(1, params(), nil)
	return x, s, m, session.FirstPSN(7)
}

func request(s *Session, psn, ack uint32, payload string, out []byte) session.Outcome {
	h := wire.Header{Type: wire.Request, PSN: psn, Ack: ack, Ops: 1}
	return s.Receive(2, &h, []byte(payload), out)
}

// An answer that is the only frame due is written at once. Any other waits: one behind
// another that is due, one of several, and one without results, which an ack for many
// frames covers.
func TestAnswerAtOnce(t *testing.T) {
	_, s, m, first := asked(t, 0)
	out := make([]byte, 1500)
	o := request(s, first, first-1, "one", out)
	if o.Verdict != session.Execute || o.Answer == 0 || o.Frames != 1 || s.Due() {
		t.Fatalf("the next frame: %+v, due: %t", o, s.Due())
	}
	h, payload, reason := wire.Parse(out[:wire.Seal(out, o.Answer)])
	if reason != wire.ReasonOK || h.Type != wire.Response || h.PSN != first || h.Ack != first || string(payload[:3]) != "one" {
		t.Fatalf("%v: %+v %q", reason, h, payload)
	}
	if o := request(s, first, first-1, "one", out); o.Verdict != session.Duplicate || o.Answer == 0 || m.ran != 1 || s.Due() {
		t.Errorf("a duplicate: %+v, %d ran", o, m.ran)
	}
	if o := request(s, first+2, first-1, "three", out); o.Verdict != session.Held || o.Answer != 0 || !s.Due() {
		t.Errorf("an early frame: %+v", o)
	}
	if o := request(s, first+1, first-1, "two", out); o.Frames != 2 || o.Answer != 0 || m.ran != 3 {
		t.Errorf("two answers at once: %+v", o)
	}
	if o := request(s, first+3, first-1, "four", out); o.Answer != 0 {
		t.Errorf("an answer overtakes those that are due: %+v", o)
	}
	for want := first + 1; s.Due(); want++ {
		n := s.Emit(out)
		if h, _, _ := wire.Parse(out[:wire.Seal(out, n)]); h.PSN != want {
			t.Fatalf("psn %d, want %d", h.PSN-first, want-first)
		}
	}
	if o := request(s, first+4, first-1, "", out); o.Verdict != session.Execute || o.Answer != 0 || !s.Due() {
		t.Errorf("a frame without results: %+v", o)
	}
	if o := request(s, first+5, first-1, "six", out); o.Answer != 0 {
		t.Errorf("an answer overtakes an ack: %+v", o)
	}
	if o := request(s, first+6, first-1, "seven", nil); o.Answer != 0 || o.Frames != 1 {
		t.Errorf("without room to write to: %+v", o)
	}
}

// A frame for whose answer there is no buffer does not run; neither does a malformed
// one, nor anything after it.
func TestWhatCannotRun(t *testing.T) {
	x, s, m, first := asked(t, 1)
	var took [][]byte
	for b := s.Buffer(); b != nil; b = s.Buffer() {
		took = append(took, b)
	}
	if o := request(s, first, first-1, "one", nil); o.Verdict != session.NoBuffer || o.Frames != 0 || m.ran != 0 {
		t.Errorf("without buffers: %+v", o)
	}
	for _, b := range took {
		s.Unbuffer(b)
	}
	request(s, first+1, first-1, "two", nil)
	if o := request(s, first, first-1, "\xff", make([]byte, 1500)); o.Refused != wire.ReasonBadPayload || o.Frames != 0 || m.ran != 0 {
		t.Errorf("malformed: %+v, %d ran", o, m.ran)
	}
	s.Settle()
	if m.left != 1 {
		t.Error("the memory was not told that the burst is over")
	}
	s.Release()
	s.Release()
	if u := x.Usage(); u.Answers.Lent+u.Holds.Lent+u.Parties != 0 {
		t.Errorf("after the end: %+v", u)
	}
}

func TestImpossible(t *testing.T) {
	for _, c := range [][2]int{{wire.MinMTU - 1, 0}, {1500, -1}} {
		if _, err := New(&echo{}, c[0], c[1]); err == nil {
			t.Errorf("MTU %d, %d buffers: no error", c[0], c[1])
		}
	}
}
