// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// places is a sink with so many places, which keeps what it gets.
type places struct {
	free int
	got  []Done
}

func (s *places) Take() bool {
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

func (s *places) Return() { s.free++ }

func (s *places) Deliver(d *Done) { s.got = append(s.got, *d) }

// read takes what was delivered and gives the places back, as a reader of completions
// does.
func (s *places) read(q *Queue) []Done {
	got := s.got
	s.got = nil
	s.free += len(got)
	q.Freed()
	return got
}

// rig is a queue with all that is around it.
type rig struct {
	t     testing.TB
	q     *Queue
	sink  *places
	rooms int
}

// newRig returns a queue with 8 receives, 4 unexpected messages, 4 chunks and 16 places,
// unless change says otherwise.
func newRig(t testing.TB, change ...func(*Config, *places)) *rig {
	r := &rig{t: t, sink: &places{free: 16}}
	c := Config{Receives: 8, Unexpected: 4, Memory: 4 * ChunkSize, Sink: r.sink, Room: func() { r.rooms++ }}
	for _, f := range change {
		f(&c, r.sink)
	}
	r.q = New(c)
	return r
}

// peer returns the address of sender n.
func peer(n int) wire.Addr { return wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, byte(n)}} }

// text returns n bytes that differ.
func text(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// check fails the test if the queue contradicts itself.
func (r *rig) check() {
	r.t.Helper()
	if err := r.q.Check(); err != nil {
		r.t.Fatal(err)
	}
}

// post posts a receive that must be accepted.
func (r *rig) post(rx Receive) {
	r.t.Helper()
	if err := r.q.Post(&rx); err != nil {
		r.t.Fatal(err)
	}
	r.check()
}

// send sends messages as one frame, until one of them is refused, and reports whether all
// were admitted.
func (r *rig) send(in *Inflow, messages ...sent) bool {
	r.t.Helper()
	in.Begin()
	refused := slices.ContainsFunc(messages, func(m sent) bool { return !m.begin(in) })
	in.End()
	r.check()
	return !refused
}

// more sends the next piece of the message in progress.
func (r *rig) more(in *Inflow, piece []byte) {
	r.t.Helper()
	if _, lacks := in.InProgress(); uint64(len(piece)) > lacks {
		r.t.Fatalf("a piece of %d bytes, and the message in progress lacks %d", len(piece), lacks)
	}
	in.Begin()
	in.Put(piece)
	in.End()
	r.check()
}

// sent is a message; only the first part bytes of it are sent at first, if part is set.
type sent struct {
	wire.Message
	data []byte
	part int
}

// begin has the message admitted and puts its first part, unless it is refused.
func (s sent) begin(in *Inflow) bool {
	s.Length = uint64(len(s.data))
	if !in.Admit(&s.Message) {
		return false
	}
	if s.Atomic.Form != 0 {
		s.Part = s.data
		in.Combine(&s.Message, nil)
		return true
	}
	in.Put(s.data[:s.first()])
	return true
}

// atomically makes a tagged message one that is written from an offset in the buffer on,
// as a tagged atomic.
func (s sent) atomically(offset uint64) sent {
	s.Atomic = wire.TaggedAtomic{Form: wire.VerbAtomic, Op: uint8(atomic.Write), Datatype: uint8(atomic.Uint8), Count: uint32(len(s.data)), Offset: offset}
	return s
}

// first returns how many bytes are sent at first.
func (s sent) first() int {
	if s.part > 0 {
		return s.part
	}
	return len(s.data)
}

// plain is an untagged message.
func plain(data string) sent { return sent{data: []byte(data)} }

// tagged is a tagged message.
func tagged(tag uint64, data string) sent {
	return sent{Message: wire.Message{Tagged: true, Tag: tag}, data: []byte(data)}
}

// anySource is an untagged receive of any sender with a buffer of n bytes.
func anySource(context any, n int) Receive {
	return Receive{Match: Match{AnySource: true}, Context: context, Buffers: [][]byte{make([]byte, n)}}
}

// byTag is a tagged receive of any sender.
func byTag(context any, tag, ignore uint64) Receive {
	r := anySource(context, 64)
	r.Tagged, r.Tag, r.Ignore = true, tag, ignore
	return r
}

// want compares what was delivered, as "context:length", with reasons other than
// received.
func (r *rig) want(list ...string) []Done {
	r.t.Helper()
	got := r.sink.read(r.q)
	var names []string
	for _, d := range got {
		s := fmt.Sprintf("%v:%d", d.Context, d.Length)
		if d.Reason != Received {
			s += " " + d.Reason.String()
		}
		if d.Released {
			s += " released"
		}
		names = append(names, s)
	}
	if fmt.Sprintf("%q", names) != fmt.Sprintf("%q", list) {
		r.t.Fatalf("completions %q, want %q", names, list)
	}
	r.check()
	return got
}

// same fails the test unless the buffer begins with the bytes.
func same(t testing.TB, buffer []byte, want string) {
	t.Helper()
	if !bytes.HasPrefix(buffer, []byte(want)) {
		t.Fatalf("buffer %q, want %q", buffer, want)
	}
}
