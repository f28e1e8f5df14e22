// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// flooder is a guest that keeps its submission ring full of one operation.
type flooder struct {
	*guest
	name   string
	entry  engine.Entry
	weight int
	reads  bool // its completions
	posted uint64
}

const fairEntries = 2048

// word is a fetch-add of one word, array a sum of n words.
func word() engine.Entry { return adds(wire.VerbFetch, 1) }

func array(n uint32) engine.Entry {
	x := adds(wire.VerbAtomic, n)
	x.Flags = engine.FlagOutside
	*placesOf(&x) = places{}
	return x
}

func adds(verb wire.Verb, n uint32) engine.Entry {
	return engine.Entry{Peer: 1, Key: 1, Verb: verb, Opcode: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: n}
}

// post fills the submission ring.
func (f *flooder) post() {
	h := f.guestRing.segment.h
	for ; f.posted-h.taken.Load() < fairEntries; f.posted++ {
		f.guestRing.segment.entries[f.posted&f.guestRing.mask()] = f.entry
	}
	h.posted.Store(f.posted)
	if f.reads {
		h.seen.Store(h.completed.Load())
	}
}

// compete has guests flood their host for so many rounds, and returns what each has been
// taken: entries and their cost.
func compete(t *testing.T, rounds int, all ...*flooder) (entries, cost []float64) {
	t.Helper()
	w := newWorld(t)
	w.region(1, 1<<20)
	before := make([]Counts, len(all))
	for _, f := range all {
		f.guest = w.guest(Sizes{Entries: fairEntries, Arena: 1 << 20, Arrivals: MinArrivals}, max(f.weight, 1))
	}
	const settle = 40 // rounds, for sessions to be open and rings to be full
	for i := range settle + rounds {
		if i == settle {
			for j, f := range all {
				before[j] = f.hostRing.Counts
			}
		}
		for _, f := range all {
			f.post()
		}
		w.host.Step()
		w.target.Step()
		w.now += 1000
	}
	for i, f := range all {
		c := f.hostRing.Counts
		if f.broken != nil || c.Refused > 0 {
			t.Errorf("%s: %d entries refused, %v", f.name, c.Refused, f.broken)
		}
		entries, cost = append(entries, float64(c.Taken-before[i].Taken)), append(cost, float64(c.Cost-before[i].Cost))
		t.Logf("%-28s weight %d: %7.1f entries and %8.0f bytes a round", f.name, max(f.weight, 1), entries[i]/float64(rounds), cost[i]/float64(rounds))
	}
	return entries, cost
}

// near reports whether two figures differ by at most a tenth.
func near(a, b float64) bool { return a <= 1.1*b && b <= 1.1*a }

// A guest that floods its host with operations takes as much from another one as its
// weight says, however long its operations are, and nothing once it has stopped reading
// its completions.
func TestFairShares(t *testing.T) {
	const rounds = 60
	words := func(weight int) *flooder { return &flooder{name: "words", entry: word(), weight: weight, reads: true} }
	arrays := func(weight int) *flooder {
		return &flooder{name: "arrays of 4096 words", entry: array(4096), weight: weight, reads: true}
	}
	lone, _ := compete(t, rounds, words(1))
	for _, c := range []struct {
		name   string
		a, b   *flooder
		shares float64 // b's cost to a's
	}{
		{"words and words", words(1), words(1), 1},
		{"words and arrays", words(1), arrays(1), 1},
		{"words, and arrays of weight 3", words(1), arrays(3), 3},
		{"words, and words of weight 3", words(1), words(3), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries, cost := compete(t, rounds, c.a, c.b)
			if !near(cost[1], c.shares*cost[0]) {
				t.Errorf("the second one has %.2f times as much as the first: want %.0f", cost[1]/cost[0], c.shares)
			}
			if entries[0] < lone[0]/(1+c.shares) {
				t.Errorf("%.0f entries of the first one, and %.0f if it is alone: want its share at least", entries[0], lone[0])
			}
		})
	}
	t.Run("one reads no completions", func(t *testing.T) {
		entries, _ := compete(t, rounds, words(1), &flooder{name: "reads nothing", entry: word()})
		if !near(entries[0], lone[0]) || entries[1] > 0 {
			t.Errorf("%.0f entries, and %.0f of the one that reads nothing: want %.0f and none", entries[0], entries[1], lone[0])
		}
	})
	t.Run("eight alike", func(t *testing.T) {
		var all []*flooder
		for range 8 {
			all = append(all, words(1))
		}
		entries, _ := compete(t, rounds, all...)
		if j := jain(entries); j < 0.95 {
			t.Errorf("Jain's index %.3f: want at least 0.95", j)
		} else {
			t.Logf("Jain's index %.3f", j)
		}
	})
}

// jain is Jain's index of fairness: 1 if all have the same, 1/n if one has all.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	return sum * sum / (float64(len(x)) * squares)
}

// What the last operation of a guest costs beyond its credit is a debt, which it pays
// while others are served, and which does not keep the engine idle.
func TestDebts(t *testing.T) {
	w := newWorld(t)
	w.region(1, 1<<20)
	g := w.guest(Sizes{Entries: fairEntries, Arena: 1 << 20, Arrivals: MinArrivals})
	other := &flooder{guest: w.guest(Sizes{Entries: fairEntries, Arena: 1 << 20, Arrivals: MinArrivals}), entry: word(), reads: true}
	f := &flooder{guest: g, entry: array(32 << 10), reads: true} // 18 rounds' worth
	step := func() {
		w.host.Step()
		w.target.Step()
		w.now += 1000
	}
	for range 10 { // it has a session when the other one comes
		other.post()
		step()
	}
	f.post()
	before := other.hostRing.Counts.Taken
	for range 18 {
		other.post()
		step()
	}
	if n, m := g.hostRing.Counts.Taken, other.hostRing.Counts.Taken-before; n != 1 || m != 18*182 {
		t.Errorf("%d operations of the one in debt, %d of the other, want 1 and %d", n, m, 18*182)
	}
	other.guestRing.segment.h.posted.Store(other.hostRing.taken) // it has nothing more
	before = g.hostRing.Counts.Taken
	for range 6 {
		step()
	}
	if n := g.hostRing.Counts.Taken - before; n < 3 {
		t.Errorf("%d operations in 6 rounds, beside one that has nothing: want one in two rounds at least", n)
	}
}

// However many sessions and frames in flight a guest has, there is room for those of
// another one.
func TestRoomBesideGuests(t *testing.T) {
	const peers = 64
	w := newWorldOf(t, engine.Config{Sessions: peers, Buffers: 256})
	w.region(1, 4096)
	greedy, other := w.guest(Sizes{Entries: fairEntries, Arena: MinArena, Arrivals: MinArrivals}), w.guest(Sizes{Entries: fairEntries, Arena: MinArena, Arrivals: MinArrivals})
	outcomes := make([]outcome, peers)
	for i := range outcomes[1:] {
		p, err := greedy.NewPeer(link, 0, uint16(i+1))
		if err != nil {
			t.Fatal(err)
		}
		s := greedy.Begin(greedy.ring)
		s.Verb, s.Peer, s.Result, s.Context = engine.VerbConnect, p.ID(), nil, &outcomes[i+1]
		greedy.Submit(greedy.ring)
	}
	for range 1000 {
		w.step()
	}
	open, refused := 0, 0
	for i := range outcomes[1:] {
		switch o := &outcomes[i+1]; {
		case o.n == 1 && o.last.Outcome == engine.Success:
			open++
		case o.n == 1 && o.last.Outcome == engine.NotExecuted:
			refused++
		}
	}
	t.Logf("a guest that asks for %d sessions of %d has %d", peers-1, peers, open)
	if open != peers/2 || open+refused != peers-1 {
		t.Errorf("%d sessions are open and %d refused: want half of all that there may be, %d", open, refused, peers/2)
	}
	if o := w.do(other.Engine, other.ring, func(s *engine.Submission) { s.Verb, s.Peer = engine.VerbConnect, other.peer.ID() }); o.last.Outcome != engine.Success {
		t.Fatalf("a session of another guest: %+v", o.last)
	}
	// The target answers no more. The peers of the greedy guest are numbered from 2 on;
	// each of the first ones has a session with a window.
	post := func(g *guest, peers int) int {
		before := w.host.Usage().Requests.Lent
		for i := range 512 {
			x := array(100)
			x.Peer = engine.PeerID(1 + i%peers)
			g.guestRing.segment.entries[g.guestRing.posted&g.guestRing.mask()] = x
			g.guestRing.posted++
		}
		g.guestRing.segment.h.posted.Store(g.guestRing.posted)
		for range 200 {
			w.host.Step()
		}
		return w.host.Usage().Requests.Lent - before
	}
	many, few := post(greedy, peers/2), post(other, 1)
	t.Logf("frames in flight: %d of the guest with many sessions, %d of the one with a session", many, few)
	if many != 128 || few < 8 {
		t.Errorf("%d frames of the guest with many sessions and %d of the other one: want half of the buffers, 128, and at least 8", many, few)
	}
}

// A guest that has all the sessions that it may have gives up one to a silent peer for
// one to a peer that answers.
func TestSilentPeersMakeRoom(t *testing.T) {
	const most = 4
	w := newWorldOf(t, engine.Config{Sessions: 2 * most, Buffers: 256})
	w.region(1, 4096)
	g := w.guest(Sizes{Entries: fairEntries, Arena: MinArena, Arrivals: MinArrivals})
	connect := func(endpoint uint16) engine.PeerID {
		p, err := g.NewPeer(link, 0, endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if o := w.do(g.Engine, g.ring, func(s *engine.Submission) { s.Verb, s.Peer = engine.VerbConnect, p.ID() }); o.last.Outcome != engine.Success {
			t.Fatalf("a session with endpoint %d: %+v", endpoint, o.last)
		}
		return p.ID()
	}
	var silent [most]outcome
	var peers [most]engine.PeerID
	for i := range peers {
		peers[i] = connect(uint16(i + 1))
	}
	w.cut = true
	for i := range peers {
		s := g.Begin(g.ring)
		s.Verb, s.Opcode, s.Datatype, s.Peer, s.Key, s.Count = wire.VerbFetch, wire.OpRead, uint8(atomic.Uint64), peers[i], 1, 1
		s.Result, s.Context = make([]byte, 8), &silent[i]
		g.Submit(g.ring)
	}
	for i := range silent {
		for silent[i].n == 0 { // until the give-up time is over
			w.step()
			w.now += 10_000_000
		}
		if silent[i].last.Outcome != engine.Unknown {
			t.Fatalf("a read of a silent peer: %+v, want unknown", silent[i].last)
		}
	}
	w.cut = false
	connect(most + 1)
}

// The peers of a guest are closed a few at a time.
func TestCloseRing(t *testing.T) {
	w := newWorld(t)
	g := w.guest(Sizes{Entries: fairEntries, Arena: MinArena, Arrivals: MinArrivals})
	for i := range 4 {
		if _, err := g.NewPeer(link, 0, uint16(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{3, 1, 0} {
		if more := g.hostRing.CloseRing(g.hosts, 2); g.hostRing.Peers() != want || more != (want > 0) {
			t.Fatalf("%d peers, more: %t; want %d", g.hostRing.Peers(), more, want)
		}
	}
}
