// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// flow takes so many messages, whole ones.
type flow struct{ room, began, came int }

func (f *flow) InProgress() (has, lacks uint64) { return 0, 0 }
func (f *flow) Begin()                          { f.began++ }
func (f *flow) Drop()                           {}
func (f *flow) End()                            {}
func (f *flow) Close()                          {}

func (f *flow) Admit(*wire.Message) bool {
	if f.room == 0 {
		return false
	}
	f.room--
	return true
}

func (f *flow) Put([]byte) { f.came++ }

// receiver is a session that receives messages into f.
func receiver(t *testing.T, f *flow) (*Executor, *Session, uint32) {
	t.Helper()
	x, err := New(&echo{}, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	with := params()
	with.Features, with.Inflow = wire.FeatureMessages, f
	return x, x.Begin(1, with, nil), session.FirstPSN(7)
}

// letters is the payload of n short messages.
func letters(n int) []byte {
	b := make([]byte, 1000)
	var w wire.RecordWriter
	w.Reset(b, len(b))
	for range n {
		part, _ := w.Message(&wire.Message{Begins: true, Length: 10}, 10)
		copy(part, "0123456789")
	}
	return b[:w.Len()]
}

func send(s *Session, psn, ack uint32, payload []byte, ops int) session.Outcome {
	h := wire.Header{Type: wire.Request, Flags: wire.FlagMessages, PSN: psn, Ack: ack, Ops: uint8(ops)}
	return s.Receive(2, &h, payload, nil)
}

// emit returns the headers of the frames that are due.
func emit(t *testing.T, s *Session) (list []wire.Header) {
	t.Helper()
	for b := make([]byte, 1500); s.Due(); {
		h, _, reason := wire.Parse(b[:s.Emit(b)])
		if reason != wire.ReasonOK {
			t.Fatal(reason)
		}
		list = append(list, h)
	}
	return list
}

// A target that waits for room says so when a frame comes, and when some of the messages
// have run; not each time that it has tried in vain.
func TestWaitsQuietly(t *testing.T) {
	f := &flow{room: 1}
	_, s, first := receiver(t, f)
	if o := send(s, first, first-1, letters(3), 3); o.Verdict != session.NoPlace || !o.Waits {
		t.Fatalf("%+v, want no place", o)
	}
	busy := func(what string, ran uint8) {
		t.Helper()
		if list := emit(t, s); len(list) != 1 || list[0].Flags&wire.FlagBusy == 0 || list[0].Ops != ran || list[0].Ack != first-1 {
			t.Errorf("%s: %+v, want one frame that says BUSY, and %d", what, list, ran)
		}
	}
	busy("at first", 1)
	for range 3 {
		if o := s.Retry(); !o.Waits || o.Due {
			t.Errorf("tried in vain: %+v, want nothing to be sent", o)
		}
	}
	f.room = 1
	s.Retry()
	busy("another message", 2)
	send(s, first, first-1, letters(3), 3)
	busy("the frame again", 2)
	f.room = 1
	if o := s.Retry(); o.Frames != 1 || o.Waits || f.came != 3 {
		t.Errorf("%+v, %d messages came, want 3", o, f.came)
	}
	if list := emit(t, s); len(list) != 1 || list[0].Flags != 0 || list[0].Ack != first {
		t.Errorf("%+v, want an ack", list)
	}
}

// A session that has ended says no longer that a message waits.
func TestEndedSessionWaitsForNothing(t *testing.T) {
	for room := range 2 {
		_, s, first := receiver(t, &flow{room: room})
		send(s, first, first-1, letters(2), 2)
		emit(t, s)
		s.Freeze(3, first-1)
		s.Shutdown(wire.ResetClosed)
		h := wire.Header{Type: wire.Probe, PSN: 1, Ack: first - 1}
		s.Receive(4, &h, nil, nil)
		for _, h := range emit(t, s) {
			if h.Flags&wire.FlagBusy != 0 {
				t.Errorf("with room for %d: %+v says that a message waits", room, h)
			}
		}
	}
}

// An initiator that sends something else in place of a frame of messages that has run in
// part has its session ended; and no buffer is lost.
func TestFrameOfMessagesReplaced(t *testing.T) {
	x, s, first := receiver(t, &flow{room: 1})
	send(s, first, first-1, letters(2), 2)
	for i := range uint32(session.MaxWindow) {
		h := wire.Header{Type: wire.Request, PSN: first + i, Ack: first - 1, Ops: 1}
		if o := s.Receive(2, &h, []byte("lie"), nil); i == 0 && o.Refused == wire.ReasonOK {
			t.Errorf("%+v, want the frame to be refused", o)
		}
	}
	s.Freeze(3, first-1)
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	s.Release()
	if u := x.Usage(); u.Answers.Lent+u.Holds.Lent > 0 {
		t.Errorf("%+v after the end", u)
	}
}
