// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// inflow has room for so many messages, and notes what it gets.
type inflow struct {
	room       int
	has, lacks uint64
	log        []string
	status     wire.Status // of atomics
}

func (in *inflow) InProgress() (has, lacks uint64) { return in.has, in.lacks }

func (in *inflow) Begin() { in.log = append(in.log, "begin") }
func (in *inflow) End()   { in.log = append(in.log, "end") }

func (in *inflow) Admit(m *wire.Message) bool {
	if in.room == 0 {
		in.log = append(in.log, "refuse")
		return false
	}
	in.room--
	in.has, in.lacks = 0, m.Length
	in.log = append(in.log, fmt.Sprint("admit ", m.Length))
	return true
}

func (in *inflow) Put(part []byte) {
	n := uint64(len(part))
	in.has, in.lacks = in.has+n, in.lacks-n
	if in.lacks == 0 {
		in.has = 0
	}
	in.log = append(in.log, fmt.Sprint("put ", n))
}

func (in *inflow) Fits(int) bool { return true }

func (in *inflow) Combine(m *wire.Message, result []byte) wire.Status {
	in.has, in.lacks, in.log = 0, 0, append(in.log, fmt.Sprint("combine ", m.Length))
	for i := range result {
		result[i] = 0xab
	}
	return in.status
}

func (in *inflow) Drop()  { in.has, in.lacks, in.log = 0, 0, append(in.log, "drop") }
func (in *inflow) Close() { in.log = append(in.log, "close") }

// said returns what was noted, and forgets it.
func (in *inflow) said() string {
	s := strings.Join(in.log, ", ")
	in.log = nil
	return s
}

// receiver is a session that receives messages into in.
func receiver(t *testing.T, in *inflow) (*Executor, *Session, uint32) {
	t.Helper()
	x, err := New(&echo{}, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	with := params()
	with.Features, with.Inflow = wire.FeatureMessages|wire.FeatureTaggedAtomics, in
	return x, x.Begin(1, with, nil), session.FirstPSN(7)
}

// record is one with a part of n bytes.
type record struct {
	wire.Message
	n uint64
}

func begins(length, n uint64) record { return record{wire.Message{Begins: true, Length: length}, n} }
func goesOn(offset, n uint64) record { return record{wire.Message{Offset: offset}, n} }
func drops(offset uint64) record     { return record{wire.Message{Offset: offset, Drop: true}, 0} }

// messages receives a frame of records.
func messages(t *testing.T, s *Session, psn uint32, records ...record) session.Outcome {
	t.Helper()
	var w wire.RecordWriter
	b := make([]byte, 1400)
	w.Reset(b, len(b))
	for _, r := range records {
		var ok bool
		if r.Atomic.Form != 0 {
			_, _, ok = w.TaggedAtomic(&r.Message)
		} else {
			_, ok = w.Message(&r.Message, r.n)
		}
		if !ok {
			t.Fatalf("no room for %+v", r)
		}
	}
	h := wire.Header{Type: wire.Request, Flags: wire.FlagMessages, PSN: psn, Ack: session.FirstPSN(7) - 1, Ops: uint8(len(records))}
	return s.Receive(2, &h, b[:w.Len()], nil)
}

// emit returns the headers of the frames that are due.
func emit(t *testing.T, s *Session) (list []wire.Header) {
	t.Helper()
	for b := make([]byte, 1500); s.Due(); {
		h, _, reason := wire.Parse(b[:wire.Seal(b, s.Emit(b))])
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
	in := &inflow{room: 1}
	_, s, first := receiver(t, in)
	if o := messages(t, s, first, begins(10, 10), begins(10, 10), begins(10, 10)); o.Verdict != session.NoPlace || !o.Waits {
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
	in.room = 1
	s.Retry()
	busy("another message", 2)
	messages(t, s, first, begins(10, 10), begins(10, 10), begins(10, 10))
	busy("the frame again", 2)
	in.room = 1
	if o := s.Retry(); o.Frames != 1 || o.Waits {
		t.Errorf("%+v, want that the frame has run", o)
	}
	if said := in.said(); strings.Count(said, "put") != 3 {
		t.Errorf("%s: want 3 messages", said)
	}
	if list := emit(t, s); len(list) != 1 || list[0].Flags != 0 || list[0].Ack != first {
		t.Errorf("%+v, want an ack", list)
	}
}

// A session that ended says no longer that a message waits.
func TestEndedSessionWaitsForNothing(t *testing.T) {
	for room := range 2 {
		_, s, first := receiver(t, &inflow{room: room})
		messages(t, s, first, begins(10, 10), begins(10, 10))
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
// part does not replace it. If the frame is not kept, its session is ended. No buffer is
// lost.
func TestFrameOfMessagesReplaced(t *testing.T) {
	for _, kept := range []bool{true, false} {
		x, s, first := receiver(t, &inflow{room: 1})
		var taken [][]byte
		for !kept && !x.holds.Empty() {
			taken = append(taken, x.holds.Get())
		}
		messages(t, s, first, begins(10, 10), begins(10, 10))
		for _, b := range taken {
			x.holds.Put(b)
		}
		for i := range uint32(session.MaxWindow) {
			h := wire.Header{Type: wire.Request, PSN: first + i, Ack: first - 1, Ops: 1}
			if o := s.Receive(2, &h, []byte("lie"), nil); i == 0 && (o.Refused == wire.ReasonOK) != kept || o.Frames > 0 {
				t.Errorf("kept: %t; %+v, want the frame to be refused if there is no other", kept, o)
			}
		}
		s.Freeze(3, first-1)
		if err := x.Check(); err != nil {
			t.Error(err)
		}
		s.Release()
		if u := x.Usage(); u.Answers.Lent+u.Holds.Lent > 0 {
			t.Errorf("kept: %t; %+v after the end", kept, u)
		}
	}
}

// A frame whose records do not follow one another is refused, and nothing of it runs: an
// inflow does not check parts.
func TestPartsThatDoNotFollow(t *testing.T) {
	const half = 1 // what the message has that is in progress, of 3
	for _, c := range []struct {
		name    string
		records []record
		ok      bool
	}{
		{"the rest", []record{goesOn(half, 2)}, true},
		{"a part, and the rest", []record{goesOn(half, 1), goesOn(half+1, 1)}, true},
		{"the rest, and another message", []record{goesOn(half, 2), begins(0, 0), begins(5, 5)}, true},
		{"a message that is let go of, and another one", []record{drops(half), begins(5, 5)}, true},
		{"another message begins", []record{begins(5, 5)}, false},
		{"another message begins behind a part", []record{goesOn(half, 1), begins(5, 5)}, false},
		{"a gap", []record{goesOn(half+1, 1)}, false},
		{"the same again", []record{goesOn(half, 1), goesOn(half, 1)}, false},
		{"more than the message lacks", []record{goesOn(half, 3)}, false},
		{"more behind the end", []record{goesOn(half, 2), goesOn(3, 1)}, false},
		{"more behind what was let go of", []record{drops(half), goesOn(half, 1)}, false},
		{"let go of though it is whole", []record{goesOn(half, 2), drops(3)}, false},
		{"let go of elsewhere", []record{drops(half + 1)}, false},
		{"two that do not end", []record{goesOn(half, 2), begins(5, 4), begins(5, 4)}, false},
	} {
		in := &inflow{room: 10}
		_, s, psn := receiver(t, in)
		if o := messages(t, s, psn, begins(3, half)); o.Frames != 1 {
			t.Fatalf("%+v", o)
		}
		in.said()
		o := messages(t, s, psn+1, c.records...)
		if ran := in.said() != ""; ran != c.ok || (o.Refused == wire.ReasonOK) != c.ok {
			t.Errorf("%s: refused %v, ran %v; want it to run: %v", c.name, o.Refused, ran, c.ok)
		}
	}
}

// A frame goes on with the message that was refused. What has run does not run again.
func TestFrameGoesOnWithARefusedMessage(t *testing.T) {
	in := &inflow{room: 1}
	_, s, psn := receiver(t, in)
	try := func(step, want string, o session.Outcome, frames int) {
		t.Helper()
		// It may be tried again at any time.
		if said := strings.ReplaceAll(in.said(), ", begin, refuse, end", ""); said != want || o.Frames != frames || o.Waits != (frames == 0) || o.Refused != wire.ReasonOK {
			t.Fatalf("%s: %q, %+v; want %q, and %d frames that ran", step, said, o, want, frames)
		}
	}
	try("room for one", "begin, admit 2, put 2, refuse, end",
		messages(t, s, psn, begins(2, 2), begins(3, 3), begins(9, 4)), 0)
	try("no room", "begin, refuse, end", s.Retry(), 0)
	in.room = 1
	try("room for another", "begin, admit 3, put 3, refuse, end", s.Retry(), 0)
	in.room = 1
	try("room for the last", "begin, admit 9, put 4, end", s.Retry(), 1)
	try("the next frame", "begin, put 5, refuse, end", messages(t, s, psn+1, goesOn(4, 5), begins(7, 7)), 0)
	in.room = 1
	try("room for its message", "begin, admit 7, put 7, end", s.Retry(), 1)
}

// A frame that waited for room, and for which there is no buffer when there is room, is
// tried again when a frame comes.
func TestKeptFrameFindsNoBuffer(t *testing.T) {
	in := &inflow{}
	x, s, first := receiver(t, in)
	messages(t, s, first, begins(10, 10))
	in.room = 1
	var taken [][]byte
	for b := s.Buffer(); b != nil; b = s.Buffer() {
		taken = append(taken, b)
	}
	if o := s.Retry(); o.Frames > 0 {
		t.Fatalf("%+v without a buffer", o)
	}
	for _, b := range taken {
		s.Unbuffer(b)
	}
	if o := messages(t, s, first, begins(10, 10)); o.Frames != 1 {
		t.Errorf("%+v, want that the frame has run", o)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}
