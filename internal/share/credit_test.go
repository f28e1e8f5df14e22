// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// post is both ends of the way on which messages come to one endpoint of a guest. It is
// the guest's Receiver, too, and the sink of its receives.
type post struct {
	testing.TB
	host   *Arrivals
	credit Credit
	guest  *GuestRing
	queue  *matching.Queue
	done   []matching.Done
	lost   int
	theirs *Segment // the segment as the host has mapped it
	taken  uint64
}

const identity = 77

// newPost returns one whose guest holds so many messages, in so many bytes.
func newPost(t testing.TB, messages, memory int) *post {
	p := &post{TB: t}
	segment, err := NewSegment(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	if err != nil {
		t.Fatal(err)
	}
	if p.theirs, err = (Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals}).Map(segment.FD()); err != nil {
		t.Fatal(err)
	}
	own, other, err := NewDoorbells()
	if err != nil {
		t.Fatal(err)
	}
	p.host = NewArrivals(p.theirs, own, func(err error) { t.Error(err) })
	p.guest, err = NewGuestRing(segment, other, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.queue = matching.New(matching.Config{Receives: 8, Unexpected: messages, Memory: memory, Sink: p, Room: func() { p.guest.Room() }})
	p.guest.Deliver(p)
	t.Cleanup(func() {
		_, _, _ = p.guest.Close(), own.Close(), p.theirs.Close()
		if err := p.queue.Check(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *post) Inflow(uint16, wire.Addr) (Inflow, uint64) {
	return p.queue.NewInflow(wire.Addr{}), identity
}
func (p *post) Operate(uint16, *wire.Record, []byte) wire.Status { return wire.StatusNoKey }
func (p *post) Callee(uint16, wire.Addr, func()) session.Callee  { return nil }
func (p *post) Settle()                                          {}

func (p *post) Events(uint16) engine.Events { return nil }
func (p *post) Lost()                       { p.lost++; p.queue.ReclaimAll() }
func (p *post) Take() bool                  { return true }
func (p *post) Return()                     {}
func (p *post) Deliver(d *matching.Done)    { p.done = append(p.done, *d) }

// read has the guest take what is in the ring.
func (p *post) read() {
	p.Helper()
	p.guest.Receive(func(uint32, *engine.Completion, uint64, []byte) { p.Error("a completion") })
	if err := p.queue.Check(); err != nil {
		p.Fatal(err)
	}
}

// hear has the host take what the guest has posted, and returns how many of it were
// answers to announcements.
func (p *post) hear() (answers int) {
	p.Helper()
	for ; p.taken != p.theirs.h.posted.Load(); p.taken++ {
		e := p.theirs.entries[p.taken%MinEntries]
		x := admissionOf(&e)
		if e.Verb != VerbAdmit {
			p.Fatalf("verb %v", e.Verb)
		}
		if e.Key != 0 {
			answers++
			p.host.Admit(e.Key, x)
		}
		if x.Identity == identity {
			p.host.Grant(&p.credit, x.Room)
		}
	}
	p.theirs.h.taken.Store(p.taken)
	return answers
}

// offer has the host offer a message of n bytes, and reports whether it was taken.
func (p *post) offer(in session.Inflow, n int) bool {
	in.Begin()
	defer in.End()
	if !in.Admit(&wire.Message{Begins: true, Length: uint64(n), Part: make([]byte, n)}) {
		return false
	}
	in.Put(make([]byte, n))
	return true
}

// take posts a receive that takes one message, of n bytes.
func (p *post) take(n int) {
	p.Helper()
	if err := p.queue.Post(&matching.Receive{Match: matching.Match{AnySource: true}, Buf: make([]byte, n)}); err != nil {
		p.Fatal(err)
	}
	if len(p.done) != 1 || p.done[0].Received != uint64(n) {
		p.Fatalf("%+v, want one message of %d bytes", p.done, n)
	}
	p.done = nil
}

// The guest is asked about the first message; for the next ones there is credit, until
// its room is full. Then one waits until there is room.
func TestCredit(t *testing.T) {
	p := newPost(t, 4, 2*matching.ChunkSize)
	in := p.host.NewInflow(1, &p.credit, wire.Addr{})
	if p.offer(in, 10) {
		t.Fatal("the guest was not asked")
	}
	p.read()
	if p.hear() != 1 || !p.offer(in, 10) || !p.offer(in, 2000) || !p.offer(in, 64) {
		t.Fatalf("there is room, and credit of %+v", p.credit.room)
	}
	if p.offer(in, 2049) { // for which there is one chunk
		t.Fatal("no room")
	}
	if p.credit.room != (matching.Room{}) {
		t.Errorf("%+v are kept with a message that waits for room", p.credit.room)
	}
	p.read()
	other := p.host.NewInflow(1, &p.credit, wire.Addr{})
	if p.hear() != 0 || p.offer(other, 1) {
		t.Fatal("there is no credit as long as a message waits for it")
	}
	p.read()
	if p.hear() != 1 || !p.offer(other, 1) {
		t.Fatal("a short message has room")
	}
	p.read()
	for _, n := range []int{10, 2000} {
		if p.hear() != 0 || p.offer(in, 2049) {
			t.Fatal("no room")
		}
		p.take(n)
		p.read()
	}
	if p.hear() != 1 || !p.offer(in, 2049) {
		t.Fatal("there is room by now")
	}
	p.read()
	for _, n := range []int{64, 1, 2049} {
		p.take(n)
	}
	in.Close()
	other.Close()
	if p.read(); len(p.guest.in.sessions) != 0 || p.credit.waiting != 0 {
		t.Errorf("%d sessions are left, %d wait", len(p.guest.in.sessions), p.credit.waiting)
	}
}

// Credit that is on its way while a message is announced for want of it comes back, so
// that the message does not wait for it forever.
func TestCreditCrosses(t *testing.T) {
	p := newPost(t, 1, 0)
	in := p.host.NewInflow(1, &p.credit, wire.Addr{})
	wanted := func() {
		if err := p.queue.Post(&matching.Receive{Match: matching.Match{AnySource: true}, Buf: make([]byte, 8)}); err != nil {
			t.Fatal(err)
		}
	}
	wanted()
	p.offer(in, 5)
	if p.read(); p.hear() != 1 || !p.offer(in, 5) || p.credit.room.Messages != 1 {
		t.Fatalf("credit %+v", p.credit)
	}
	p.read()
	wanted()
	if !p.offer(in, 5) {
		t.Fatal("there is credit")
	}
	p.read() // and more is on its way, as a receive has taken the message
	if p.offer(in, 5) {
		t.Fatal("there is no credit yet")
	}
	if p.read(); p.hear() != 0 || p.credit != (Credit{matching.Room{Messages: 1}, 1}) {
		t.Fatalf("credit %+v", p.credit)
	}
	if p.offer(in, 5) {
		t.Fatal("the message is announced, and the guest decides")
	}
	if p.read(); p.hear() != 1 || !p.offer(in, 5) {
		t.Fatal("there is room")
	}
}

// Credit that comes back when the guest has admitted the message already does not have it
// admitted twice.
func TestCreditCrossesAdmission(t *testing.T) {
	p := newPost(t, 2, 0)
	in := p.host.NewInflow(1, &p.credit, wire.Addr{})
	p.offer(in, 5) // announced
	p.host.Grant(&p.credit, matching.Room{Messages: 1})
	p.offer(in, 5) // and again, with the credit
	p.read()
	if n := p.hear(); n != 1 {
		t.Fatalf("%d answers", n)
	}
	if !p.offer(in, 5) {
		t.Fatal("there is room")
	}
	p.read()
	if u := p.queue.Usage(); u.Held != 1 {
		t.Errorf("%+v", u)
	}
}

// Whatever a guest says of its room changes nothing but what it gets itself, and nothing
// that is no answer is taken for one.
func TestCreditOfNonsense(t *testing.T) {
	p := newPost(t, 4, 0)
	in := p.host.NewInflow(1, &p.credit, wire.Addr{})
	p.host.Admit(1, &Admission{}) // nothing is announced
	fetch := wire.Message{Begins: true, Tagged: true, Match: true, Length: 8, Part: make([]byte, 8),
		Atomic: wire.TaggedAtomic{Form: wire.VerbFetch, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: 1}}
	admit := func() bool {
		in.Begin()
		defer in.End()
		return in.Admit(&fetch)
	}
	if admit() {
		t.Fatal("the guest was not asked")
	}
	for _, x := range []Admission{
		{}, {Length: 7}, {Length: 16}, {Length: math.MaxUint32},
		{Length: 8, Values: MinArena - 7}, {Length: 8, Values: math.MaxUint64},
		{Length: 8, Status: wire.StatusNotExecuted}, {Length: 8, Status: 255},
	} {
		p.host.Admit(1, &x)
		p.host.Admit(2, &x)
		if admit() {
			t.Fatalf("admitted by %+v", x)
		}
	}
	p.host.Admit(1, &Admission{Length: 8, Values: MinArena - 8})
	p.host.Admit(1, &Admission{Length: 8, Values: 0}) // it has been said
	copy(p.theirs.arena[MinArena-8:], "scribble")
	if !admit() {
		t.Fatal("not admitted")
	}
	result := make([]byte, 8)
	in.Begin()
	if status := in.Combine(&fetch, result); status != wire.StatusOK || string(result) != "scribble" {
		t.Errorf("%v, %q", status, result)
	}
	in.End()
	for range 3 {
		p.host.Grant(&p.credit, matching.Room{Messages: math.MaxUint32, Bytes: math.MaxUint32})
	}
	if p.offer(in, 1000); p.credit.room != (matching.Room{Messages: math.MaxUint32 - 1, Bytes: math.MaxUint32 - matching.ChunkSize}) {
		t.Errorf("credit %+v", p.credit.room)
	}
	in.Close()
	p.host.Admit(1, &Admission{})
}

// Atomics on the buffer of a receive are combined by the guest. The host knows how each
// ends when it hands it over, and what it finds, of every datatype.
func TestAtomicsAcross(t *testing.T) {
	p := newPost(t, 4, 0)
	in := p.host.NewInflow(1, &p.credit, wire.Addr{})
	for dt := range atomic.Datatype(atomic.NumDatatypes) {
		for form, op := range map[wire.Verb]atomic.Op{wire.VerbAtomic: atomic.Write, wire.VerbFetch: atomic.Write, wire.VerbCompare: atomic.CswapNE} {
			for misfit, want := range map[bool]wire.Status{false: wire.StatusOK, true: wire.StatusOutOfBounds} {
				name := fmt.Sprintf("%v %v, misfit %v", dt, form, misfit)
				n := wire.ElemSize(uint8(dt))
				m := wire.Message{Begins: true, Tagged: true, Match: true, Length: uint64(n), Part: bytes.Repeat([]byte{1}, n),
					Atomic: wire.TaggedAtomic{Form: form, Op: uint8(op), Datatype: uint8(dt), Count: 1}}
				var result []byte
				if form != wire.VerbAtomic {
					result = make([]byte, n)
				}
				if form == wire.VerbCompare {
					m.Atomic.Compare = bytes.Repeat([]byte{2}, n)
				}
				if misfit {
					m.Atomic.Offset = 1 << 40
				}
				admit := func() bool {
					in.Begin()
					defer in.End()
					return in.Admit(&m)
				}
				buf := bytes.Repeat([]byte{3}, 64)
				if admit() {
					t.Fatal(name, "comes without a receive")
				}
				p.read()
				if p.hear() != 0 {
					t.Fatal(name, "is admitted without a receive")
				}
				if err := p.queue.Post(&matching.Receive{Match: matching.Match{Tagged: true, AnySource: true}, Buf: buf}); err != nil {
					t.Fatal(err)
				}
				p.read()
				if p.hear(); !admit() {
					t.Fatal(name, "is not admitted")
				}
				in.Begin()
				if status := in.Combine(&m, result); status != want {
					t.Error(name, status)
				}
				in.End()
				if p.read(); len(p.done) != 1 || !p.done[0].Atomic || misfit != (p.done[0].Reason == matching.Truncated) {
					t.Fatalf("%s: %+v", name, p.done)
				}
				p.done = nil
				if misfit {
					continue
				}
				if !bytes.Equal(result, buf[n:][:len(result)]) || !bytes.Equal(buf[:n], m.Part) || !bytes.Equal(buf[n:], bytes.Repeat([]byte{3}, 64-n)) {
					t.Errorf("%s: found %v, the buffer is %v", name, result, buf)
				}
			}
		}
	}
	if at, ok := p.guest.space.get(p.guest.space.largest()); !ok || at != 0 {
		t.Error("values are left in the arena")
	}
}

// An arena without room for the values of an atomic makes it wait, until an operation has
// given room back.
func TestAtomicWithoutArena(t *testing.T) {
	p := newPost(t, 4, 0)
	in := p.host.NewInflow(1, &p.credit, wire.Addr{})
	all := p.guest.space.largest()
	at, _ := p.guest.space.get(all)
	if err := p.queue.Post(&matching.Receive{Match: matching.Match{Tagged: true, AnySource: true}, Buf: make([]byte, 8)}); err != nil {
		t.Fatal(err)
	}
	m := wire.Message{Begins: true, Tagged: true, Match: true, Length: 8,
		Atomic: wire.TaggedAtomic{Form: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(atomic.Uint64), Count: 1}}
	in.Begin()
	in.Admit(&m)
	in.End()
	for range 2 {
		if p.read(); p.hear() != 0 {
			t.Fatal("admitted without room for the values")
		}
	}
	p.guest.space.put(at, all)
	if p.read(); p.hear() != 1 {
		t.Fatal("not admitted")
	}
	in.Close() // the atomic never comes, and the receive is as it was
	p.read()
	if u := p.queue.Usage(); u.Posted != 1 {
		t.Errorf("%+v", u)
	}
}

// What has arrived in the ring is the guest's, though the host has ended meanwhile.
func TestArrivedOutlivesHost(t *testing.T) {
	p := newPost(t, 4, 0)
	in := p.host.NewInflow(1, &p.credit, wire.Addr{})
	p.offer(in, 5)
	p.read()
	p.hear()
	if !p.offer(in, 5) || !p.offer(in, 6) {
		t.Fatal("no room")
	}
	if err := p.guest.Lose(); err != nil {
		t.Fatal(err)
	}
	if u := p.queue.Usage(); u.Held != 2 || u.Leased != (matching.Room{}) || u.Inflows != 0 || p.lost != 1 {
		t.Errorf("%+v, told %d times", u, p.lost)
	}
}
