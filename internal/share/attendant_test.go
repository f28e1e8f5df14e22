// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	fiatomic "github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// away is a host and a guest that has memory which the host has not, joined by their
// rings.
type away struct {
	testing.TB
	host   *Arrivals
	hosts  *HostRing
	guest  *GuestRing
	theirs *Segment
	memory *memory.Memory // of the guest
	bytes  []byte
	on     atomic.Bool
	broken error
	ran    int
}

const awayKey = 5

func newAway(t testing.TB, sizes Sizes) *away {
	w := newWorld(t)
	a := &away{TB: t}
	segment, err := NewSegment(sizes)
	if err != nil {
		t.Fatal(err)
	}
	if a.theirs, err = sizes.Map(segment.FD()); err != nil {
		t.Fatal(err)
	}
	own, other, err := NewDoorbells()
	if err != nil {
		t.Fatal(err)
	}
	evict := func(err error) { a.broken = err }
	a.host, a.hosts = NewArrivals(a.theirs, own, evict), NewHostRing(a.theirs, own, w.host, evict)
	a.hosts.OnAnswer(a.host.Answer)
	if a.guest, err = NewGuestRing(segment, other, nil); err != nil {
		t.Fatal(err)
	}
	a.guest.Deliver(a)
	table := mr.NewTable()
	mem, err := mr.Alloc(8192, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := uint64(awayKey)
	if _, err := table.Register(mem, mr.Options{Key: &key, Length: 8192, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		t.Fatal(err)
	}
	a.memory, a.bytes = memory.New(table), mem.Bytes()
	a.on.Store(true)
	t.Cleanup(func() {
		a.memory.Close()
		_, _, _ = a.guest.Close(), own.Close(), a.theirs.Close()
	})
	return a
}

func (a *away) Inflow(uint16, wire.Addr) (Inflow, uint64)       { return nil, 0 }
func (a *away) Events(uint16) engine.Events                     { return nil }
func (a *away) Lost()                                           {}
func (a *away) Callee(uint16, wire.Addr, func()) session.Callee { return nil }

func (a *away) Settle() { a.memory.Leave() }

func (a *away) Operate(_ uint16, rec *wire.Record, result []byte) wire.Status {
	a.ran++
	return a.memory.Apply(rec, 0, result)
}

func (a *away) attendant(origin uint64) *attendant {
	return a.host.NewAttendant(3, wire.Addr{}, origin, &a.on).(*attendant)
}

// fetchAdds is the payload of n fetch-adds of 1 on word 0.
func fetchAdds(t testing.TB, n int) ([]byte, int) {
	t.Helper()
	var w wire.RecordWriter
	b := make([]byte, 1400)
	w.Reset(b, 1400)
	for range n {
		if !w.Append(&wire.Record{Verb: wire.VerbFetch, Op: uint8(fiatomic.Sum), Datatype: uint8(fiatomic.Uint64), Count: 1, Total: 1, Key: awayKey,
			Operand: binary.LittleEndian.AppendUint64(nil, 1)}) {
			t.Fatal("no room")
		}
	}
	return b[:w.Len()], w.Ops()
}

// serve has the guest execute what it has been handed.
func (a *away) serve() {
	a.guest.Receive(func(uint32, *engine.Completion, uint64, []byte) { a.Error("a completion") })
}

// hear has the host take what the guest has posted.
func (a *away) hear() { a.hosts.Take(1 << 20) }

// taken returns the answer to the oldest ticket.
func (a *away) taken(t *attendant, n int) (values []uint64) {
	a.Helper()
	if !t.Answered() {
		a.Fatal("not answered")
	}
	for range n {
		status, result := t.Next()
		if status != wire.StatusOK {
			a.Fatal(status)
		}
		values = append(values, binary.LittleEndian.Uint64(result))
	}
	t.Take()
	return values
}

// Operations go to the guest in order, once, and their results come back: in the entry,
// or by way of the arena, which the guest gets back.
func TestGuestExecutes(t *testing.T) {
	a := newAway(t, Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	x := a.attendant(1)
	sum := uint64(0)
	for i := range 200 {
		n := []int{1, 2, 100}[i%3]
		payload, ops := fetchAdds(t, n)
		if !x.Hand(uint32(i), payload, ops) || !x.Hand(uint32(i)+1000, payload, ops) {
			t.Fatal("no room")
		}
		a.serve()
		if a.serve(); x.Answered() {
			t.Fatal("answered before the host has looked")
		}
		a.hear()
		for range 2 {
			for _, v := range a.taken(x, n) {
				if v != sum {
					t.Fatalf("round %d: found %d, want %d", i, v, sum)
				}
				sum++
			}
		}
	}
	if got := binary.LittleEndian.Uint64(a.bytes); got != sum || a.broken != nil || x.Answered() || !x.Alone() {
		t.Errorf("%d added, want %d; %v", got, sum, a.broken)
	}
	if a.serve(); len(a.guest.answers) != 0 {
		t.Errorf("%d blocks of the arena are still taken", len(a.guest.answers))
	}
}

// Frames that come and go, up to eight at a time, allocate nothing at either side.
func TestGuestExecutesNotAllocate(t *testing.T) {
	a := newAway(t, Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	x := a.attendant(1)
	few, one := fetchAdds(t, 1)
	many, hundred := fetchAdds(t, 100)
	psn := uint32(0)
	round := func() {
		for i := range uint32(8) {
			payload, ops := few, one
			if i%2 == 1 {
				payload, ops = many, hundred
			}
			if !x.Hand(psn+i, payload, ops) {
				t.Fatal("no room")
			}
		}
		psn += 8
		a.serve()
		for a.hear(); x.Answered(); x.Take() {
			if status, _ := x.Next(); status != wire.StatusOK {
				t.Fatal(status)
			}
		}
	}
	for range 20 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 || !x.Alone() {
		t.Errorf("%v allocations for eight frames", n)
	}
}

// A guest that does not read fills its ring, and nothing else: what has no room waits,
// and comes when the guest reads. One that has no room for answers executes nothing.
func TestGuestExecutesLater(t *testing.T) {
	a := newAway(t, Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	x := a.attendant(1)
	payload, ops := fetchAdds(t, 100)
	n := uint32(0)
	for x.Hand(n, payload, ops) {
		if n++; n > 1000 {
			t.Fatal("the ring has room without end")
		}
	}
	done := 0
	for range 1000 {
		a.serve()
		if a.ran > 100*MinEntries+100*done {
			t.Fatalf("%d operations ran, but the host has heard of %d frames", a.ran, done)
		}
		for a.hear(); x.Answered(); done++ {
			a.taken(x, 100)
		}
		if done == int(n) {
			break
		}
	}
	if done != int(n) || !a.host.Refused() || !x.Hand(n, payload, ops) {
		t.Errorf("%d of %d frames", done, n)
	}
}

// Other sessions of a pair learn when it owes nothing, also if the session has ended.
func TestAlone(t *testing.T) {
	a := newAway(t, Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	x, y, z := a.attendant(1), a.attendant(1), a.attendant(2)
	payload, ops := fetchAdds(t, 1)
	x.Hand(7, payload, ops)
	if x.Close(); !x.Alone() || y.Alone() || !z.Alone() {
		t.Errorf("alone: %t, %t, %t; want true, false, true", x.Alone(), y.Alone(), z.Alone())
	}
	a.serve()
	if a.hear(); !y.Alone() || a.broken != nil || len(a.host.attends) != 2 {
		t.Errorf("the pair owes something after the answer, or the session is remembered: %v", a.broken)
	}
	x = a.attendant(1)
	x.Hand(8, payload, ops)
	a.host.End()
	if x.Attends() || !y.Alone() || x.Hand(9, payload, ops) {
		t.Error("a guest that has gone attends")
	}
}

// Another host goes on with the same segment: nothing is handed over again, and no answer
// is lost, be it posted, taken, or still to come.
func TestGuestExecutesAcrossTakeover(t *testing.T) {
	a := newAway(t, Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	x, gone := a.attendant(1), a.attendant(1)
	payload, ops := fetchAdds(t, 1)
	x.Hand(1, payload, ops)
	a.serve()
	a.hear() // taken
	x.Hand(2, payload, ops)
	a.serve() // posted
	x.Hand(3, payload, ops)
	gone.Hand(9, payload, ops)
	gone.Close()
	x.Detach()
	in := a.host.Export()
	text, err := json.Marshal(&in)
	if err != nil {
		t.Fatal(err)
	}
	var same ArrivalsState
	if err := json.Unmarshal(text, &same); err != nil {
		t.Fatal(err)
	}
	ring := a.hosts.Export()
	w := newWorld(t)
	evict := func(err error) { a.broken = err }
	a.host, a.hosts = NewArrivals(a.theirs, a.host.doorbell, evict), NewHostRing(a.theirs, a.host.doorbell, w.host, evict)
	a.hosts.OnAnswer(a.host.Answer)
	a.host.Restore(&same)
	a.hosts.Restore(&ring)
	a.hosts.Unhold()
	y := a.attendant(1)
	if n := y.Restore(x.State()); n != 3 || y.Alone() {
		t.Fatalf("%d tickets, want 3; alone: %t", n, y.Alone())
	}
	if n := a.attendant(1).Restore(x.State()); n != 0 {
		t.Errorf("another session has the same %d tickets", n)
	}
	a.serve()
	a.hear()
	for want := range uint64(3) {
		if got := a.taken(y, 1); got[0] != want {
			t.Errorf("found %d, want %d", got[0], want)
		}
	}
	if a.ran != 4 || !y.Alone() || a.broken != nil {
		t.Errorf("%d ran, want 4; %v", a.ran, a.broken)
	}
}

// A guest that answers what it was not asked, or not as it was asked, is turned out.
func TestLyingAnswers(t *testing.T) {
	le := binary.LittleEndian
	good := append(le.AppendUint16(nil, 8), 0, 0)
	good = append(le.AppendUint16(good, 8), 0, 0)
	good = append(good, make([]byte, 16)...)
	change := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	entry := func(session, ticket uint64, answer []byte) engine.Entry {
		e := engine.Entry{Verb: VerbAnswer, Key: session, Cookie: ticket, Count: uint32(len(answer))}
		copy(e.Inline[:], answer)
		return e
	}
	outside := func(at uint64, count uint32) engine.Entry {
		e := engine.Entry{Verb: VerbAnswer, Key: 1, Cookie: 50, Count: count, Flags: engine.FlagOutside}
		placesOf(&e).Operand = at
		return e
	}
	long := entry(1, 50, good)
	long.Count = 200
	for name, c := range map[string]struct {
		entries []engine.Entry
		refused string // part of the reason; empty: it is taken
	}{
		"as asked":               {[]engine.Entry{entry(1, 50, good)}, ""},
		"both tickets":           {[]engine.Entry{entry(1, 50, good), entry(1, 51, good)}, ""},
		"twice":                  {[]engine.Entry{entry(1, 50, good), entry(1, 50, good)}, "want 51"},
		"another ticket":         {[]engine.Entry{entry(1, 51, good)}, "want 50"},
		"no ticket":              {[]engine.Entry{entry(1, 50|1<<40, good)}, "want 50"},
		"a third":                {[]engine.Entry{entry(1, 50, good), entry(1, 51, good), entry(1, 52, good)}, "nothing of it"},
		"another session":        {[]engine.Entry{entry(2, 50, good)}, "nothing of it"},
		"session never begun":    {[]engine.Entry{entry(99, 50, good)}, "nothing of it"},
		"session 0":              {[]engine.Entry{entry(0, 50, good)}, "nothing of it"},
		"short":                  {[]engine.Entry{entry(1, 50, good[:7])}, "want 4 for each"},
		"nothing":                {[]engine.Entry{entry(1, 50, nil)}, "want 4 for each"},
		"a result short":         {[]engine.Entry{entry(1, 50, good[:20])}, "belong to no operation"},
		"a byte more":            {[]engine.Entry{entry(1, 50, append(bytes.Clone(good), 1))}, "belong to no operation"},
		"short result":           {[]engine.Entry{entry(1, 50, change(0, 7))}, "want 8"},
		"long result":            {[]engine.Entry{entry(1, 50, change(4, 16))}, "want 8"},
		"huge result":            {[]engine.Entry{entry(1, 50, change(1, 0xff))}, "want 8"},
		"result of a failure":    {[]engine.Entry{entry(1, 50, change(2, uint8(wire.StatusNoKey)))}, "want 0"},
		"not found":              {[]engine.Entry{entry(1, 50, change(2, uint8(wire.StatusNotFound)))}, "not found"},
		"a status that is none":  {[]engine.Entry{entry(1, 50, change(6, 200))}, "want what executing"},
		"beyond the entry":       {[]engine.Entry{long}, "200 bytes"},
		"beyond the arena":       {[]engine.Entry{outside(MinArena-8, 24)}, "24 bytes"},
		"far beyond the arena":   {[]engine.Entry{outside(1<<63, 24)}, "24 bytes"},
		"longer than any answer": {[]engine.Entry{outside(0, mostAnswer+1)}, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAway(t, Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
			x := a.attendant(1)
			a.attendant(1)
			payload, ops := fetchAdds(t, 2)
			for psn := range uint32(2) {
				x.Hand(50+psn, payload, ops)
			}
			copy(a.theirs.entries, c.entries)
			a.theirs.h.posted.Store(uint64(len(c.entries)))
			a.hear()
			switch {
			case c.refused == "" && a.broken != nil:
				t.Error(a.broken)
			case c.refused != "" && (a.broken == nil || !strings.Contains(a.broken.Error(), c.refused)):
				t.Errorf("%v, want %q", a.broken, c.refused)
			}
		})
	}
}

var _ session.MobileAttendant = (*attendant)(nil)
