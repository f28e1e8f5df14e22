// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
	"pgregory.net/rapid"
)

// pair is a queue and its model, which do the same.
type pair struct {
	q       *Queue
	sink    *places
	model   model
	inflows []*Inflow
	names   []int // of the inflows, in the model
	rooms   int
	refused map[int]refusal // by inflow
	booked  []Receive       // reserved
}

// refusal is a message that was refused, and how often Room had been called before.
type refusal struct {
	message sent
	rooms   int
}

func TestQueueDoesAsItsModel(t *testing.T) { rapid.Check(t, compare) }

// The seeds are long, so that what is done with them is.
func FuzzQueue(f *testing.F) {
	for i := range byte(8) {
		seed := make([]byte, 8192)
		rand.NewChaCha8([32]byte{i}).Read(seed)
		f.Add(seed)
	}
	f.Fuzz(rapid.MakeFuzz(compare))
}

// compare lets a queue and its model do the same things at random.
func compare(t *rapid.T) {
	p := &pair{sink: &places{free: rapid.IntRange(1, 8).Draw(t, "places")}, refused: map[int]refusal{}}
	cfg := Config{
		Receives: rapid.IntRange(1, 5).Draw(t, "receives"), Unexpected: rapid.IntRange(0, 5).Draw(t, "unexpected"),
		Memory: rapid.IntRange(0, 4*ChunkSize).Draw(t, "memory"), Sink: p.sink, Room: func() { p.rooms++ },
	}
	p.q, p.model = New(cfg), model{cfg: cfg, free: p.sink.free}
	for i := range 3 {
		p.inflows, p.names = append(p.inflows, p.q.NewInflow(peer(i))), append(p.names, p.model.id())
	}
	t.Repeat(map[string]func(*rapid.T){
		"":        p.agree,
		"post":    p.post,
		"post 2":  p.post,
		"frame":   p.frame,
		"frame 2": p.frame,
		"frame 3": p.frame,
		"end":     p.end,
		"peek":    p.peek,
		"discard": p.discard,
		"cancel":  p.cancel,
		"read":    p.read,
		"reserve": p.reserve,
		"start":   p.start,
	})
	for _, rx := range p.booked {
		p.q.CancelReserved(&rx)
		p.model.abandon(&rx)
	}
	p.q.Close()
	p.model.close()
	byContext := func(a, b Done) int { return cmp.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)) }
	slices.SortFunc(p.sink.got, byContext)
	slices.SortFunc(p.model.done, byContext)
	p.agree(t)
}

// agree compares the two.
func (p *pair) agree(t *rapid.T) {
	if err := p.q.Check(); err != nil {
		t.Fatal(err)
	}
	if len(p.sink.got)+len(p.model.done) > 0 && !reflect.DeepEqual(p.sink.got, p.model.done) {
		t.Fatalf("completions\n%+v, want\n%+v", p.sink.got, p.model.done)
	}
	held, claimed, chunks := p.model.held()
	want := Usage{Held: held, Claimed: claimed, Memory: chunks * ChunkSize, Inflows: len(p.inflows), Made: p.q.Usage().Made}
	want.Places = p.model.booked
	for _, r := range p.model.rxs {
		want.Places += r.filling
		if r.waits {
			want.Places++
			want.Posted++
		} else {
			want.Filling++
		}
	}
	if u := p.q.Usage(); u != want || p.sink.free != p.model.free {
		t.Fatalf("%+v, %d places are free; want %+v, %d", u, p.sink.free, want, p.model.free)
	}
	// A message that was refused and would be admitted now has been called for.
	for i, r := range p.refused {
		if r.rooms < p.rooms || p.model.closed {
			continue
		}
		m := p.model.clone()
		if m.admit(p.names[i], i, r.message) {
			t.Fatalf("Room was not called, though there is room for %+v", r.message)
		}
	}
}

var (
	contexts = rapid.SampledFrom([]any{"a", "b", "c", "d"})
	tags     = rapid.Uint64Range(0, 2)
	sources  = rapid.SampledFrom([]uint16{0, 0, 0, 1})
	ignores  = rapid.SampledFrom([]uint64{0, 0, 1, 3, ^uint64(0)})
	lengths  = rapid.SampledFrom([]int{0, 1, 2, 5, 9, 13, 20, 40, 64, 65, 200, 2048, 2049, 5000})
	sizes    = rapid.SampledFrom([]int{0, 1, 5, 40, 64, 65, 200, 2048, 2049, 5000})
)

func drawMatch(t *rapid.T) Match {
	m := Match{
		Tagged: rapid.Bool().Draw(t, "tagged"), Tag: tags.Draw(t, "tag"), Ignore: ignores.Draw(t, "ignore"),
		AnySource: rapid.Bool().Draw(t, "any"), From: peer(rapid.IntRange(0, 2).Draw(t, "from")),
	}
	m.From.Endpoint = sources.Draw(t, "source")
	return m
}

func (p *pair) post(t *rapid.T) {
	rx := drawReceive(t)
	got, want := p.q.Post(&rx), p.model.post(rx)
	if got != want {
		t.Fatalf("post %v, want %v", got, want)
	}
}

// reserve reserves a receive.
func (p *pair) reserve(t *rapid.T) {
	rx := drawReceive(t)
	rx.Claim, rx.Reserved = false, true
	got, want := p.q.Reserve(&rx), p.model.reserve()
	if got != want {
		t.Fatalf("reserve %v, want %v", got, want)
	}
	if got == nil {
		p.booked = append(p.booked, rx)
	}
}

// start posts a receive that was reserved, or ends it in another way.
func (p *pair) start(t *rapid.T) {
	if len(p.booked) == 0 {
		return
	}
	rx := p.booked[0]
	p.booked = p.booked[1:]
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		p.q.Unreserve()
		p.model.booked--
		p.model.free++
		p.model.settleAll()
	case 1:
		p.q.CancelReserved(&rx)
		p.model.abandon(&rx)
	default:
		if got, want := p.q.Post(&rx), p.model.post(rx); got != want || got != nil {
			t.Fatalf("post of a receive that was reserved: %v, want %v", got, want)
		}
	}
}

func drawReceive(t *rapid.T) Receive {
	rx := Receive{Match: drawMatch(t), Context: contexts.Draw(t, "context")}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		rx.Claim = true
	case 1, 2:
		rx.Multi, rx.MinFree = true, rapid.SampledFrom([]int{0, 1, 10, 50}).Draw(t, "minFree")
	}
	count := rapid.IntRange(0, 3).Draw(t, "buffers")
	if rx.Multi {
		count = 1
	}
	for range count {
		size := sizes.Draw(t, "size")
		if rx.Multi {
			size += 50
		}
		rx.Buffers = append(rx.Buffers, make([]byte, size))
	}
	return rx
}

func drawMessage(t *rapid.T) sent {
	w := wire.Message{
		Tagged: rapid.Bool().Draw(t, "tagged"), Tag: tags.Draw(t, "tag"), Source: sources.Draw(t, "source"),
		Match: rapid.IntRange(0, 9).Draw(t, "match") == 0,
	}
	if rapid.Bool().Draw(t, "hasData") {
		w.HasData, w.Data = true, rapid.Uint64().Draw(t, "data")
	}
	data := text(lengths.Draw(t, "length"))
	for i, salt := 0, rapid.Byte().Draw(t, "salt"); i < len(data); i++ {
		data[i] ^= salt
	}
	s := sent{Message: w, data: data}
	if w.Tagged && len(data) > 0 && rapid.IntRange(0, 2).Draw(t, "atomic") == 0 {
		s = s.atomically(rapid.SampledFrom([]uint64{0, 0, 1, 60, 3000, 1 << 63}).Draw(t, "offset"))
	}
	return s
}

func (p *pair) frame(t *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(t, "inflow")
	if p.records(t, i) && p.refused[i].rooms != p.rooms {
		t.Fatal("Room was called, though nothing has made room since the message was refused")
	}
}

// records sends a frame, record by record: the next piece of the message in progress; if
// none is in progress now, messages that begin, until one is refused.
func (p *pair) records(t *rapid.T, i int) (refused bool) {
	p.inflows[i].Begin()
	defer p.inflows[i].End()
	p.goOn(t, i)
	return p.model.current(p.names[i]) == nil &&
		slices.ContainsFunc(p.drawFrame(t, i), func(s sent) bool { return !p.begin(t, i, s) })
}

// goOn sends the next piece of the message in progress, or drops the message.
func (p *pair) goOn(t *rapid.T, i int) {
	in, c := p.inflows[i], p.model.current(p.names[i])
	has, lacks := in.InProgress()
	switch {
	case c == nil && has+lacks == 0:
	case c == nil || has != uint64(c.got) || lacks != uint64(len(c.data)-c.got):
		t.Fatalf("a message in progress has %d bytes and lacks %d, want %+v", has, lacks, c)
	case rapid.IntRange(0, 5).Draw(t, "drop") == 0:
		in.Drop()
		p.model.drop(p.names[i])
	default:
		piece := c.data[c.got:][:rapid.IntRange(1, len(c.data)-c.got).Draw(t, "piece")]
		in.Put(piece)
		p.model.arrive(c.id, len(piece))
	}
}

// drawFrame draws some messages that begin, of which the last one may not end. A message
// that was refused may be the first one.
func (p *pair) drawFrame(t *rapid.T, i int) []sent {
	frame := rapid.SliceOfN(rapid.Custom(drawMessage), 0, 4).Draw(t, "frame")
	if r, ok := p.refused[i]; ok && rapid.Bool().Draw(t, "again") {
		frame = slices.Insert(frame, 0, r.message)
	}
	if n := len(frame); n > 0 && len(frame[n-1].data) > 0 && frame[n-1].Atomic.Form == 0 {
		s := &frame[n-1]
		s.part = rapid.IntRange(1, len(s.data)).Draw(t, "part")
	}
	return frame
}

// begin sends a message that begins, and returns false if it was refused.
func (p *pair) begin(t *rapid.T, i int, s sent) bool {
	rooms := p.rooms
	ok, want := s.begin(p.inflows[i]), p.model.admit(p.names[i], i, s)
	if ok != want {
		t.Fatalf("%+v: admitted %v, want %v", s, ok, want)
	}
	if !ok {
		s.part = 0
		p.refused[i] = refusal{s, rooms}
		return false
	}
	delete(p.refused, i)
	p.model.arrive(p.model.ids, s.first())
	return true
}

func (p *pair) end(t *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(t, "inflow")
	p.inflows[i].Close()
	p.model.drop(p.names[i])
	p.inflows[i], p.names[i] = p.q.NewInflow(peer(i)), p.model.id()
}

func (p *pair) peek(t *rapid.T) {
	match, context := drawMatch(t), contexts.Draw(t, "context")
	found := rapid.SampledFrom([]Found{Look, Claim, Claim, Discard}).Draw(t, "found")
	d, ok := p.q.Peek(&match, found, context)
	want, wanted := p.model.peek(&match, found, context)
	if ok != wanted || !reflect.DeepEqual(d, want) {
		t.Fatalf("%v %+v, want %v %+v", ok, d, wanted, want)
	}
}

func (p *pair) discard(t *rapid.T) {
	context := contexts.Draw(t, "context")
	d, ok := p.q.Discard(context)
	if want, wanted := p.model.discard(context); ok != wanted || !reflect.DeepEqual(d, want) {
		t.Fatalf("%v %+v, want %v %+v", ok, d, wanted, want)
	}
}

func (p *pair) cancel(t *rapid.T) {
	context := contexts.Draw(t, "context")
	if got, want := p.q.Cancel(context), p.model.cancel(context); got != want {
		t.Fatalf("cancel: %v, want %v", got, want)
	}
}

// read takes some completions, the oldest first.
func (p *pair) read(t *rapid.T) {
	n := rapid.IntRange(0, len(p.sink.got)).Draw(t, "n")
	p.sink.got, p.model.done = p.sink.got[n:], p.model.done[n:]
	p.sink.free, p.model.free = p.sink.free+n, p.model.free+n
	p.q.Freed()
	p.model.settleAll()
}
