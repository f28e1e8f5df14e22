// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// script writes what is done with a queue of package matching at random, as lines for
// match_test.c, and what came of it, as that program prints it. The package's own tests
// compare it with a model.
type script struct {
	rng   *rand.Rand
	lines *strings.Builder // what is done
	told  *strings.Builder // what came of it
	line  strings.Builder  // of the line at hand

	q         *matching.Queue
	inflows   [3]*matching.Inflow
	messages  [3]wire.Message // in progress
	salts     [3]byte
	at        [3]int
	buffers   map[int][][]byte // by receive
	reserved  []matching.Receive
	ids       int // of receives
	places    int
	delivered int // and not read
	rooms     int
	leased    matching.Room
	closed    bool
	counts    map[string]int
}

func (s *script) Take() bool {
	if s.places == 0 {
		return false
	}
	s.places--
	return true
}

func (s *script) Return() { s.places++ }

func (s *script) Deliver(d *matching.Done) {
	s.delivered++
	s.counts[d.Reason.String()]++
	s.tellDone(d)
}

const fnvBegin = 0xcbf29ce484222325

func fnv(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return h
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tell adds to what has come of the line at hand.
func (s *script) tell(format string, args ...any) { fmt.Fprintf(&s.line, format, args...) }

func (s *script) tellDone(d *matching.Done) {
	note, _ := d.Note.(int)
	to, _ := d.To.(int)
	h := uint64(fnvBegin)
	for _, b := range s.buffers[note] {
		h = fnv(h, b)
	}
	s.tell(" done %d %d %d reason %d %d of %d tag %x data %x", d.Context, note, to, d.Reason, d.Received, d.Length, d.Tag,
		d.Data)
	s.tell(" flags %d%d%d%d%d from %d/%d buffer %d %d hash %x", flag(d.Tagged), flag(d.Atomic), flag(d.HasData),
		flag(d.Released), flag(d.Silent), d.From.MAC[5], d.From.Endpoint, flag(d.Buf != nil), d.Offset, h)
}

// do writes a line of the script; the caller has done what it says.
func (s *script) do(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintln(s.lines, line)
	u := s.q.Usage()
	fmt.Fprintf(s.told, "%c%s usage %d %d %d %d %d %d %d %d/%d places %d rooms %d\n", line[0], &s.line, u.Posted, u.Filling,
		u.Held, u.Claimed, u.Places, u.Inflows, u.Memory, u.Leased.Messages, u.Leased.Bytes, s.places, s.rooms)
	s.line.Reset()
	s.counts[line[:1]]++
}

func pick[T any](s *script, of ...T) T { return of[s.rng.IntN(len(of))] }

func (s *script) one(in int) bool { return s.rng.IntN(in) == 0 }

func (s *script) open(i int) {
	s.inflows[i] = s.q.NewInflow(wire.Addr{MAC: wire.MAC{5: byte(i + 1)}})
	s.inflows[i].To = i + 1
}

// begin begins a script.
func (s *script) begin() {
	s.places = 1 + s.rng.IntN(8)
	s.buffers, s.counts = map[int][][]byte{}, map[string]int{}
	c := matching.Config{Receives: 1 + s.rng.IntN(5), Unexpected: s.rng.IntN(6),
		Memory: s.rng.IntN(4*matching.ChunkSize + 1), Sink: s, Room: func() { s.rooms++ }}
	line := fmt.Sprintf("Q %d %d %d %d", c.Receives, c.Unexpected, c.Memory, s.places)
	s.q = matching.New(c)
	for i := range s.inflows {
		s.open(i)
	}
	s.do("%s", line)
}

func (s *script) pattern() (m matching.Match, text string) {
	node := s.rng.IntN(3)
	m = matching.Match{Tagged: s.one(2), Tag: uint64(s.rng.IntN(3)), Ignore: pick(s, 0, 0, 1, 3, ^uint64(0)),
		AnySource: s.one(2), From: wire.Addr{MAC: wire.MAC{5: byte(node + 1)}, Endpoint: pick[uint16](s, 0, 0, 0, 1)}}
	return m, fmt.Sprintf("%d %d %d %d %d %d", flag(m.Tagged), m.Tag, m.Ignore, flag(m.AnySource), node, m.From.Endpoint)
}

// receive draws a receive and returns it with its text.
func (s *script) receive(mayClaim bool) (r matching.Receive, text string) {
	s.ids++
	var match string
	r.Context, r.Note = 1+s.rng.IntN(3), s.ids
	r.Match, match = s.pattern()
	r.Silent = s.one(4)
	count := s.rng.IntN(4)
	switch s.rng.IntN(6) {
	case 0:
		r.Claim = mayClaim
	case 1, 2:
		r.Multi, r.MinFree = true, pick(s, 0, 1, 10, 50, 120)
		if count = 1; s.one(9) {
			count = 2
		}
	}
	r.Buffers = make([][]byte, count, 4)
	lengths := ""
	for i := range r.Buffers {
		size := pick(s, 0, 1, 5, 40, 64, 65, 200, 2048, 2049, 5000)
		if r.Multi {
			size += 50
		}
		r.Buffers[i] = make([]byte, size+48)[:size:size] // at a multiple of 16, as in C
		lengths += fmt.Sprintf(" %d", size)
	}
	s.buffers[s.ids] = r.Buffers
	return r, fmt.Sprintf("%d %d %s %d %d %d %d %d%s", s.ids, r.Context, match, flag(r.Multi), r.MinFree, flag(r.Claim),
		flag(r.Silent), count, lengths)
}

// result returns the enum match_result of an error.
func result(err error) int {
	for i, e := range []error{nil, matching.ErrFull, matching.ErrClosed, matching.ErrMulti, matching.ErrNotClaimed} {
		if errors.Is(err, e) {
			return i
		}
	}
	panic(err)
}

func (s *script) post() {
	r, text := s.receive(true)
	if len(r.Buffers) == 0 && r.Multi {
		return
	}
	err := s.q.Post(&r)
	s.tell(" post %d", result(err))
	s.do("P %s", text)
}

func (s *script) reserve() {
	r, text := s.receive(false)
	err := s.q.Reserve(&r)
	s.tell(" reserve %d", result(err))
	if err == nil {
		r.Reserved = true
		s.reserved = append(s.reserved, r)
	}
	s.do("R %s", text)
}

// start ends the reservation made first, in one of three ways.
func (s *script) start() {
	if len(s.reserved) == 0 {
		return
	}
	r := s.reserved[0]
	s.reserved = s.reserved[1:]
	switch how := s.rng.IntN(4); {
	case how == 0 && !s.closed:
		s.q.Unreserve()
		s.do("U")
	case how == 1 || s.closed:
		s.q.CancelReserved(&r)
		s.do("G %d", r.Note)
	default:
		s.tell(" start %d", result(s.q.Post(&r)))
		s.do("S %d", r.Note)
	}
}

// within does something with an inflow, as in a frame.
func (s *script) within(i int, f func(in *matching.Inflow)) {
	s.inflows[i].Begin()
	f(s.inflows[i])
	s.inflows[i].End()
}

func (s *script) tellLacks(i int) bool {
	_, lacks := s.inflows[i].InProgress()
	s.tell(" lacks %d", lacks)
	return lacks > 0
}

// data returns the next n bytes of the message in progress of an inflow.
func (s *script) data(i, n int) []byte {
	b := make([]byte, n)
	for j := range b {
		at := s.at[i] + j
		b[j] = byte(at*7+at>>8) ^ s.salts[i]
	}
	s.at[i] += n
	return b
}

// calls are operations on the buffer of a receive; of the last one there is no kernel.
var calls = []wire.TaggedAtomic{
	{Form: wire.VerbAtomic, Op: uint8(atomic.Write), Datatype: uint8(atomic.Uint8)},
	{Form: wire.VerbAtomic, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64)},
	{Form: wire.VerbFetch, Op: uint8(atomic.Bxor), Datatype: uint8(atomic.Uint128)},
	{Form: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(atomic.Uint32)},
	{Form: wire.VerbCompare, Op: uint8(atomic.CswapGE), Datatype: uint8(atomic.Uint16)},
	{Form: wire.VerbAtomic, Op: uint8(atomic.Bor), Datatype: uint8(atomic.Double)},
}

// announce has a message begin, whose first pieces may follow.
func (s *script) announce(i int, leased bool) {
	w := wire.Message{Begins: true, Tagged: s.one(2), Tag: uint64(s.rng.IntN(3)), Source: pick[uint16](s, 0, 0, 0, 1),
		Match: s.one(10), HasData: s.one(2), Length: pick[uint64](s, 0, 1, 2, 5, 9, 13, 20, 40, 64, 65, 200, 2048, 2049, 5000)}
	if w.HasData {
		w.Data = s.rng.Uint64()
	}
	if w.Tagged && w.Length > 0 && s.one(3) {
		w.Atomic = pick(s, calls...)
		size := uint64(atomic.Datatype(w.Atomic.Datatype).Size())
		w.Length = (w.Length + size - 1) / size * size
		w.Atomic.Count = uint32(w.Length / size)
		w.Atomic.Offset = pick[uint64](s, 0, 0, 0, 1, 16, 64, 3000, 1<<63)
		w.Match = w.Match || w.Atomic.Form != wire.VerbAtomic
	}
	if leased {
		w.Match = false
		w.Atomic = wire.TaggedAtomic{}
	}
	s.messages[i], s.at[i], s.salts[i] = w, 0, byte(s.rng.Uint32())
	admitted := false
	s.within(i, func(in *matching.Inflow) {
		if leased {
			in.AdmitLeased(&w)
			return
		}
		admitted = in.Admit(&w)
		s.tell(" admitted %d", flag(admitted))
	})
	s.tellLacks(i)
	a := &w.Atomic
	s.do("A %d %d %d %d %d %d %d %d %d %d %d %d %d %d", i, flag(leased), flag(w.Tagged), w.Tag, w.Source, flag(w.Match),
		flag(w.HasData), w.Data, w.Length, s.salts[i], a.Form, a.Op, a.Datatype, a.Offset)
	switch {
	case !admitted && !leased:
	case a.Form != 0:
		s.combine(i)
	case w.Length == 0 || s.one(2):
		s.put(i, int(w.Length))
	default:
		s.put(i, 1+s.rng.IntN(int(w.Length)))
	}
}

// reasons are the enum match_reason of the statuses of atomics.
var reasons = map[wire.Status]int{wire.StatusOK: 0, wire.StatusOutOfBounds: 1, wire.StatusMisaligned: 5, wire.StatusUnsupported: 6}

func (s *script) combine(i int) {
	w := &s.messages[i]
	n := int(w.Length)
	w.Part, w.Atomic.Compare = s.data(i, n), s.data(i, n)
	values, found := make([]byte, n), make([]byte, n)
	returns := w.Atomic.Form != wire.VerbAtomic
	s.within(i, func(in *matching.Inflow) {
		into, before := 1, in.Find(values)
		if before == wire.StatusNotExecuted {
			into, before = 0, wire.StatusOK
		}
		into2 := found
		if !returns {
			into2 = nil
		}
		if w.Atomic.Form != wire.VerbCompare {
			w.Atomic.Compare = nil
		}
		how := in.Combine(w, into2)
		s.tell(" into %d %d values %x how %d result %x", into, reasons[before], fnv(fnvBegin, values), reasons[how],
			fnv(fnvBegin, found))
	})
	s.do("B %d %d", i, flag(returns))
}

func (s *script) put(i, n int) {
	b := s.data(i, n)
	s.within(i, func(in *matching.Inflow) { in.Put(b) })
	s.tellLacks(i)
	s.do("T %d %d", i, n)
}

// frame goes on with the message in progress of an inflow, or begins others.
func (s *script) frame() {
	i := s.rng.IntN(3)
	_, lacks := s.inflows[i].InProgress()
	switch {
	case lacks > 0 && s.one(6):
		s.within(i, func(in *matching.Inflow) { in.Drop() })
		s.do("D %d", i)
	case lacks > 0:
		s.put(i, 1+s.rng.IntN(int(lacks)))
	default:
		s.announce(i, s.leased.Messages > 0 && s.one(2))
	}
}

func (s *script) end() {
	i := s.rng.IntN(3)
	s.inflows[i].Close()
	s.open(i)
	s.do("E %d", i)
}

func (s *script) peek() {
	m, text := s.pattern()
	found, context := pick(s, matching.Look, matching.Claim, matching.Claim, matching.Discard), 1+s.rng.IntN(3)
	d, ok := s.q.Peek(&m, found, context)
	s.tell(" found %d", flag(ok))
	s.tellDone(&d)
	s.do("K %s %d %d", text, found, context)
}

func (s *script) discard() {
	context := 1 + s.rng.IntN(4)
	d, ok := s.q.Discard(context)
	s.tell(" found %d", flag(ok))
	s.tellDone(&d)
	s.do("X %d", context)
}

func (s *script) cancel() {
	context := 1 + s.rng.IntN(4)
	s.tell(" cancel %d", flag(s.q.Cancel(context)))
	s.do("C %d", context)
}

func (s *script) read() {
	n := s.rng.IntN(s.delivered + 1)
	s.delivered -= n
	s.places += n
	s.q.Freed()
	s.do("F %d", n)
}

func (s *script) lease() {
	all := s.one(2)
	s.within(0, func(in *matching.Inflow) {
		r := in.Lease(all)
		s.leased.Add(r)
		s.tell(" leased %d %d", r.Messages, r.Bytes)
	})
	s.do("L %d", flag(all))
}

func (s *script) reclaim() {
	r := matching.Room{Messages: uint32(s.rng.IntN(4)), Bytes: uint32(s.rng.IntN(3)) * matching.ChunkSize}
	s.within(0, func(in *matching.Inflow) { in.Reclaim(r) })
	s.leased = s.q.Usage().Leased
	s.do("M %d %d", r.Messages, r.Bytes)
}

// run does so many things at random, closes the queue, and does some more.
func (s *script) run(steps int) {
	some := []func(){s.post, s.post, s.post, s.post, s.post, s.frame, s.frame, s.frame, s.frame, s.frame, s.frame, s.frame,
		s.end, s.peek, s.peek, s.discard, s.cancel, s.read, s.read, s.read, s.reserve, s.start, s.lease, s.reclaim}
	s.begin()
	for range steps {
		pick(s, some...)()
	}
	s.q.Close()
	s.closed = true
	s.do("Z")
	for range 5 {
		pick(s, s.post, s.frame, s.frame, s.peek, s.cancel, s.read, s.start)()
	}
	for len(s.reserved) > 0 {
		s.start()
	}
}

// Queues in C do as those of package matching, in scripts at random.
func TestMatching(t *testing.T) {
	t.Parallel()
	const scripts, steps = 2000, 80
	program := build(t, sanitized, "match_test", "match.c", "match_post.c", "match_flow.c", "match_place.c", "kernels.c")
	var lines, told strings.Builder
	counts := map[string]int{}
	begins := make([]int, scripts) // of each script, in bytes of lines
	for i := range scripts {
		begins[i] = lines.Len()
		s := script{rng: rand.New(rand.NewPCG(uint64(i), 1)), lines: &lines, told: &told}
		s.run(steps)
		for what, n := range s.counts {
			counts[what] += n
		}
	}
	t.Logf("%d lines: %v", strings.Count(lines.String(), "\n"), counts)
	for _, what := range []string{"received", "truncated", "cancelled", "lost", "spent", "misplaced", "unsupported", "P", "R",
		"S", "U", "G", "A", "T", "B", "D", "E", "K", "X", "C", "F", "L", "M", "Z"} {
		if counts[what] < 5 {
			t.Errorf("%q came %d times: the scripts do too little", what, counts[what])
		}
	}
	got := strings.Split(string(run(t, []byte(lines.String()), program)), "\n")
	want := strings.Split(told.String(), "\n")
	script := 0
	for i := range min(len(got), len(want)) {
		if strings.HasPrefix(want[i], "Q") && i > 0 {
			script++
		}
		if got[i] != want[i] {
			text := lines.String()[begins[script]:]
			t.Fatalf("script %d, line %d:\n%s\nwant\n%s\nthe script:\n%s", script, i, got[i], want[i],
				bytes.TrimSpace([]byte(text[:min(len(text), 3000)])))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
}
