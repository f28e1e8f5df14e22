// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// inline keeps the results that completions carry.
type inline struct {
	result Result
	value  [InlineResult]byte
	length uint64
	done   int
}

func (r *inline) Complete(_ *Submission, c *Completion, later *Later) {
	r.result, r.value, r.length = c.Result(later), c.Inline, c.Length
	r.done++
}

// Results of every size come whole, in the caller's memory or the completion, whatever
// else is in the frame: alone, among others of its size, and among others.
func TestResultsOfEverySize(t *testing.T) {
	sizes := []atomic.Datatype{atomic.Uint8, atomic.Uint16, atomic.Uint32, atomic.Uint64, atomic.Uint128, atomic.LongDoubleComplex}
	for _, direct := range []bool{true, false} {
		for _, mixed := range []bool{false, true} {
			c := newCable(t, session.Config{})
			p := c.peer(ethernet())
			c.write(p, 1000, 1)
			memory := c.nodes[1].bytes
			for i := range memory[:4096] {
				memory[i] = byte(i*7 + i>>8)
			}
			was := bytes.Clone(memory)
			for i, dt := range sizes {
				t.Run(fmt.Sprintf("direct=%t/mixed=%t/%v", direct, mixed, dt), func(t *testing.T) {
					n := dt.Size()
					var got [4]inline
					var results [4][]byte
					for k := range got {
						of := dt
						if mixed {
							of = sizes[(i+k)%len(sizes)]
						}
						if k%2 == 0 {
							results[k] = make([]byte, of.Size())
						}
						c.submit(p, direct, func(s *Submission) {
							s.Context, s.Result, s.Offset, s.Datatype = &got[k], results[k], uint64(256*i+32*k), uint8(of)
							s.Opcode = wire.OpRead
							if k == 3 && !mixed && n <= 16 { // fails to compare: the value is not 0
								s.Verb, s.Opcode = wire.VerbCompare, uint8(atomic.Cswap)
								s.SetOperands(make([]byte, n), make([]byte, n))
							}
						})
					}
					for range 10000 {
						if c.step(); got[len(got)-1].done > 0 {
							break
						}
					}
					for k := range got {
						size := n
						if mixed {
							size = sizes[(i+k)%len(sizes)].Size()
						}
						value := results[k]
						if value == nil {
							value = got[k].value[:size]
						}
						if want := was[256*i+32*k:][:size]; got[k].result != (Result{}) || got[k].length != uint64(size) || !bytes.Equal(value, want) {
							t.Errorf("operation %d: %+v, %d bytes, %x; want success, %d, %x", k, got[k].result, got[k].length, value, size, want)
						}
					}
				})
			}
			if !bytes.Equal(memory[:4096], was[:4096]) {
				t.Error("reads and failed comparisons changed the memory")
			}
		}
	}
}

// Check finds an operation that was taken and lies nowhere, and one that counts a
// fragment too many: neither would ever complete.
func TestCheckFindsLostOperations(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 9, 1)
	e, ring := c.nodes[0].eng[0], c.nodes[0].ring
	c.post(p, 0, 1)
	e.Collect(ring)
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	f := p.r.conn.stage.cargo.frags[0].f
	f.pending++
	if e.Check() == nil {
		t.Error("an operation counts two fragments in flight, and has one")
	}
	f.pending--
	ring.begin()
	if e.Check() == nil {
		t.Error("an operation is in no frame, no queue and no watch")
	}
}

// When all flights are in use there is nothing to post directly; what is published
// waits in the cells, and goes first when a flight is free again.
func TestFlightsRunOut(t *testing.T) {
	const size = 4
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 9, 1)
	e := c.nodes[0].eng[0]
	ring, err := NewRing(size, Contexts{})
	if err != nil {
		t.Fatal(err)
	}
	e.AddRing(ring, nil)
	c.nodes[0].ring = ring
	var all []*outcomes
	var results [][]byte
	post := func(direct bool) {
		result := make([]byte, 8)
		all = append(all, c.submit(p, direct, func(s *Submission) { s.Result = result }))
		results = append(results, result)
	}
	for range size {
		post(true)
	}
	if e.Begin(ring) != nil {
		t.Fatal("a fifth of four flights")
	}
	for range size {
		post(false)
	}
	if ring.Claim() != nil || e.Begin(ring) != nil {
		t.Fatal("more is accepted than four flights and four cells")
	}
	for i, r := range all {
		if got := c.done(r); got.Outcome != Success || !bytes.Equal(results[i], words(uint64(i))) {
			t.Errorf("operation %d: %+v, result %x: not in its turn", i, got, results[i])
		}
	}
	if !ring.Empty() {
		t.Error("the ring is not empty in the end")
	}
}

// Rings over the same flights can have as many operations in flight together as these
// are, and what they take is asked for when it is needed.
func TestFlightsShared(t *testing.T) {
	const size, can = 4 * FlightsAtOnce, 2 * FlightsAtOnce
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 9, 1)
	e := c.nodes[0].eng[0]
	asked := 0
	flights := NewFlights(size, func(bytes int) bool {
		asked += bytes
		return asked <= can/2*FlightLen
	})
	var rings [3]*Ring
	for i := range rings {
		rings[i] = NewDirect(flights, Contexts{})
		e.AddRing(rings[i], nil)
	}
	if asked > 0 {
		t.Errorf("%d bytes are asked for before they are needed", asked)
	}
	own := c.nodes[0].ring
	var all []*outcomes
	for i := range can {
		c.nodes[0].ring = rings[i%len(rings)]
		all = append(all, c.submit(p, true, func(s *Submission) { s.Result = make([]byte, 8) }))
	}
	c.nodes[0].ring = own
	if flights.under()+flights.following != can {
		t.Fatalf("%d operations and %d followers are under way, want %d", flights.under(), flights.following, can)
	}
	for i, r := range rings {
		if e.Begin(r) != nil {
			t.Errorf("ring %d: one operation more than can be afforded", i)
		}
	}
	for i, r := range all {
		if got := c.done(r); got.Outcome != Success {
			t.Fatalf("operation %d: %+v", i, got)
		}
	}
	if flights.under() != 0 || flights.following != 0 {
		t.Errorf("%d operations and %d followers are under way in the end", flights.under(), flights.following)
	}
	if n := int(reflect.TypeFor[flight]().Size()) + 8 + shortList*int(reflect.TypeFor[mr.Extent]().Size()); n > FlightLen {
		t.Errorf("a flight takes %d bytes, and FlightLen says %d", n, FlightLen)
	}
	if n := longList * int(reflect.TypeFor[mr.Extent]().Size()); n > ListLen || longList <= wire.MaxOps {
		t.Errorf("a list of %d extents takes %d bytes, and ListLen says %d; a frame holds %d", longList, n, ListLen, wire.MaxOps)
	}
}

// A flight keeps memory for the extents of a frame, once it has afforded that.
func TestListsAreAfforded(t *testing.T) {
	for _, can := range []bool{true, false} {
		c := newCable(t, session.Config{})
		p := c.peer(ethernet())
		e, asked := c.nodes[0].eng[0], 0
		flights := NewFlights(1, func(bytes int) bool { asked += bytes; return can })
		c.nodes[0].ring = NewDirect(flights, Contexts{})
		e.AddRing(c.nodes[0].ring, nil)
		for _, n := range []int{1, shortList, shortList + 1, longList, longList + 1, 1, longList} {
			got := c.done(c.submit(p, true, func(s *Submission) {
				s.Count, s.Result = uint32(n), make([]byte, 8*n)
				s.SetOperands(make([]byte, 8*n), nil)
				for i := range s.MakeExtents(n) {
					s.Extents[i] = mr.Extent{Key: 1, Offset: uint64(8 * i), Count: 1}
				}
			}))
			if got.Outcome != Success {
				t.Fatalf("%d extents: %+v", n, got)
			}
			kept, most, want := 0, longList, 0
			if own := flights.free[0].own; own != nil {
				kept = cap(*own)
			}
			if !can {
				most = shortList
			}
			if n <= most {
				want = n
			}
			if kept < want || kept > most {
				t.Errorf("afforded: %v: after %d extents there is memory for %d, want %d..%d", can, n, kept, want, most)
			}
		}
		if want := map[bool]int{true: ListLen}[can]; flights.Afforded() != want || asked != ListLen {
			t.Errorf("%d bytes were asked for and %d given, want %d", asked, flights.Afforded(), want)
		}
	}
}

// However many goroutines call, packets and operations do not wait for all of them.
func TestCallsInTurns(t *testing.T) {
	e := newCable(t, session.Config{}).nodes[0].eng[0]
	ran := 0
	for range 3 * callsAtOnce {
		if !e.Call(func() { ran++ }) {
			t.Fatal("too many calls")
		}
	}
	for i := range 3 {
		if e.Step(); ran != (i+1)*callsAtOnce {
			t.Errorf("%d calls have run in %d rounds, want %d in each", ran, i+1, callsAtOnce)
		}
	}
}
