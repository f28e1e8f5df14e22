// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

var worldMACs = [2]wire.MAC{{2, 0, 0, 0, 0, 0xa}, {2, 0, 0, 0, 0, 0xb}}

// tapPort keeps the latest packets and delivers forged ones.
type tapPort struct {
	*port.Memory
	w      *world
	side   int
	inject [][]byte
	out    []byte
	dry    float64 // probability of no buffer
}

func (p *tapPort) Receive(b [][]byte) int {
	n := p.Memory.Receive(b)
	for n < len(b) && len(p.inject) > 0 {
		b[n] = p.inject[0]
		p.inject = p.inject[1:]
		n++
	}
	return n
}

func (p *tapPort) Buffer() []byte {
	if p.dry > 0 && p.w.rng.Float64() < p.dry {
		return nil
	}
	p.out = p.Memory.Buffer()
	return p.out
}

func (p *tapPort) Send(n int) {
	seen := &p.w.seen[1-p.side]
	*seen = append(*seen, slices.Clone(p.out[:n]))
	if len(*seen) > 300 {
		*seen = (*seen)[100:]
	}
	p.Memory.Send(n)
}

type worldOp struct {
	w       *world
	peer    int
	slot, n int
	fetch   bool
	data    bool // it asks for an event
	message bool // it is one, of n bytes
	waits   bool // it waits, until the word is 2 or a limit has passed
	tells   bool // it is one that is an atomic, and the target tells how it ends
	told    int  // its events; of a message, how often it has arrived
	out     []byte
	results []Result
}

func (o *worldOp) Complete(_ *Submission, c *Completion, later *Later) {
	r := c.Result(later)
	o.results = append(o.results, r)
	if r.Outcome == Success && o.fetch && o.n == 1 && binary.LittleEndian.Uint64(o.out) != 0 && o.w.strict {
		o.w.t.Errorf("seed %d: slot %d: fetched %d before the add", o.w.seed, o.slot, binary.LittleEndian.Uint64(o.out))
	}
}

type world struct {
	t     testing.TB
	seed  uint64
	rng   *rand.Rand
	now   int64
	ports [2]*tapPort
	eng   [2]*Engine
	mem   *memory.Memory     // of node 1
	exec  *executor.Executor // likewise
	inbox *inbox             // likewise
	asked []*askedCall       // likewise: calls that are not answered
	ring  *Ring
	peers []*Peer
	table *mr.Table
	bytes []byte
	words *mr.Region  // the bytes
	seen  [2][][]byte // packets to each side
	ops   []*worldOp
	used  int

	flushes []*worldFlush
	strict  bool
	steps   int
	cfg     Config
}

const worldSlots = 1 << 17

// worldEvents counts the events of each operation. Now and then it has no place for one.
type worldEvents world

func (w *worldEvents) Take() bool { return w.rng.IntN(8) > 0 }
func (w *worldEvents) Return()    {}

func (w *worldEvents) Deliver(e *Event) {
	if e.Data >= uint64(len(w.ops)) || !w.ops[e.Data].data {
		if w.strict {
			w.t.Errorf("seed %d: an event %+v that no operation asked for", w.seed, e)
		}
		return
	}
	o := w.ops[e.Data]
	o.told++
	if v := binary.LittleEndian.Uint64(w.bytes[8*(o.slot+o.n-1):]); v == 0 && w.strict {
		w.t.Errorf("seed %d: an event of operation %d before it was executed", w.seed, e.Data)
	}
}

func newWorld(t testing.TB, seed uint64, strict bool) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 99)), now: 1, strict: strict}
	pa, pb := port.NewMemoryPair(1500, seed)
	w.ports = [2]*tapPort{{Memory: pa, w: w}, {Memory: pb, w: w, side: 1}}
	w.table = mr.NewTable()
	w.bytes = make([]byte, 8*worldSlots)
	m, err := mr.Adopt(w.bytes)
	if err != nil {
		t.Fatal(err)
	}
	key := uint64(1)
	r, err := w.table.Register(m, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite, Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	w.words = r
	w.cfg = Config{
		Buffers: []int{3, 20, 70, 1000}[w.rng.IntN(4)], Sessions: []int{4, 8, 64}[w.rng.IntN(3)],
		Session: session.Config{GiveUp: time.Duration(50+w.rng.IntN(3000)) * time.Millisecond, Window: 1 + w.rng.IntN(64)},
	}
	w.start(0)
	w.start(1)
	w.ring, _ = NewRing(256, Contexts{})
	origin := w.eng[0].NewOrigin(0)
	if w.rng.IntN(3) == 0 {
		origin = w.eng[0].NewUnorderedOrigin(0)
	}
	w.eng[0].AddRing(w.ring, origin)
	for range 3 {
		p, err := origin.NewPeer(wire.Link{Local: worldMACs[0], Remote: worldMACs[1]}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.peers = append(w.peers, p)
	}
	return w
}

func (w *world) start(i int) {
	c := w.cfg
	c.Port, c.MTU, c.Local = w.ports[i], 1500, worldMACs[i]
	if i == 1 {
		w.mem = memory.New(w.table)
		var err error
		if w.exec, err = executor.New(w.mem, 1500, c.Buffers); err != nil {
			w.t.Fatal(err)
		}
		c.Serve = serving(w.exec)
		w.inbox = w.newInbox()
		c.Inflow = w.inflow
		c.Callee, w.asked = w.callee, nil
		c.Accept = func(uint16, uint64) wire.HelloStatus { return wire.HelloAccepted }
	}
	c.Clock = func() int64 { return w.now }
	c.Session.Features = wire.FeatureNotices | wire.FeatureMessages | wire.FeatureUnordered | wire.FeatureTaggedAtomics |
		wire.FeatureWaits | wire.FeatureCalls
	c.Events = func(uint16) Events { return (*worldEvents)(w) }
	e, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	NewGroup([]*Engine{e})
	w.eng[i] = e
}

// serving has an engine's sessions served by x.
func serving(x *executor.Executor) func(int64, session.TargetParams) Served {
	return func(now int64, p session.TargetParams) Served { return x.Begin(now, p, nil) }
}

func (w *world) post() {
	n := 1
	if w.rng.IntN(20) == 0 {
		n = 1 + w.rng.IntN(900)
	}
	message := w.rng.IntN(4) == 0
	if message {
		n = w.rng.IntN(1 << w.rng.IntN(15))
	}
	if !message && w.used+n > worldSlots {
		return
	}
	op := w.ring.Claim()
	if op == nil {
		return
	}
	if w.rng.IntN(50) == 0 {
		op.Release()
		return
	}
	o := &worldOp{w: w, peer: w.rng.IntN(len(w.peers)), slot: w.used, n: n, fetch: w.rng.IntN(2) == 0}
	if o.message = message; !message {
		w.used += n
	}
	operand := make([]byte, 8*n)
	for i := range n {
		operand[8*i] = 1
	}
	op.Peer, op.Context, op.Key, op.Offset, op.Count = w.peers[o.peer].ID(), o, 1, uint64(8*o.slot), uint32(n)
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbAtomic, uint8(atomic.Sum), uint8(atomic.Uint64), 0
	if o.fetch {
		op.Verb = wire.VerbFetch
		o.out = make([]byte, 8*n)
	}
	if w.rng.IntN(10) == 0 {
		op.Flags = FlagFence
	}
	if o.data = !message && w.rng.IntN(4) == 0; o.data {
		op.Flags |= FlagData
		op.Data = uint64(len(w.ops))
	}
	op.SetOperands(operand, nil)
	op.Result = o.out
	switch {
	case message:
		o.fill(op, len(w.ops))
	case n == 1 && !o.data && w.rng.IntN(50) == 0: // few, since each look is at all
		o.wait(op)
	}
	op.Publish()
	w.ops = append(w.ops, o)
}

// forge delivers an old packet once more, or, when not strict, a damaged one with a
// checksum that is right.
func (w *world) forge() {
	side := w.rng.IntN(2)
	if len(w.seen[side]) == 0 {
		return
	}
	b := slices.Clone(w.seen[side][w.rng.IntN(len(w.seen[side]))])
	if !w.strict && w.rng.IntN(4) != 0 {
		f := b[14:]
		for range 1 + w.rng.IntN(3) {
			switch w.rng.IntN(8) {
			case 0:
				f[0] = wire.Version<<4 | byte(1+w.rng.IntN(8))
			case 1:
				binary.LittleEndian.PutUint32(f[10:], binary.LittleEndian.Uint32(f[10:])+uint32(w.rng.IntN(140))-70)
			case 2:
				binary.LittleEndian.PutUint32(f[14:], binary.LittleEndian.Uint32(f[14:])+uint32(w.rng.IntN(140))-70)
			case 3:
				binary.LittleEndian.PutUint64(f[18:], w.rng.Uint64()&w.rng.Uint64())
			case 4:
				binary.LittleEndian.PutUint16(f[26:], uint16(w.rng.IntN(80)))
			case 5:
				f[28] = byte(w.rng.IntN(256))
			case 6:
				f[1] = byte(w.rng.IntN(32))
			case 7:
				f[wire.HeaderLen+w.rng.IntN(len(f)-wire.HeaderLen)] ^= 1 << w.rng.IntN(8)
			}
		}
		wire.Seal(f, len(f))
	}
	w.ports[side].inject = append(w.ports[side].inject, b)
}

func (w *world) step() {
	if w.steps%8 == 0 {
		w.release()
	}
	if w.eng[0].Step()+w.eng[1].Step() == 0 {
		w.now += int64(time.Millisecond)
	} else {
		w.now += 1000
	}
	if w.steps++; w.steps%8 == 0 {
		for i, e := range w.eng {
			if err := e.Check(); err != nil {
				w.t.Fatalf("seed %d: engine %d: %v", w.seed, i, err)
			}
		}
		if err := errors.Join(w.exec.Check(), w.inbox.q.Check()); err != nil {
			w.t.Fatalf("seed %d: %v", w.seed, err)
		}
	}
}

func (w *world) pending() (n int) {
	for _, o := range w.ops {
		if len(o.results) == 0 {
			n++
		}
	}
	return n
}

func (w *world) run() {
	for range 4000 {
		switch k := w.rng.IntN(1000); {
		case k < 300:
			for range 1 + w.rng.IntN(20) {
				w.post()
			}
		case k < 318:
			w.receive()
		case k < 320:
			w.flush()
		case k < 322:
			w.peers[w.rng.IntN(len(w.peers))].Cancel(w.anyOp())
			if n := len(w.flushes); n > 0 {
				w.peers[0].Cancel(w.flushes[n-1])
			}
		case k < 340:
			for range 1 + w.rng.IntN(10) {
				w.forge()
			}
		case k < 345:
			for _, p := range w.ports {
				p.SetFaults(port.Faults{Loss: w.rng.Float64() * 0.3, Duplicate: w.rng.Float64() * 0.3, Reorder: w.rng.Float64() * 0.5, Corrupt: w.rng.Float64() * 0.05})
			}
		case k < 347:
			for _, p := range w.ports {
				p.SetFaults(port.Faults{})
			}
		case k < 349:
			w.ports[w.rng.IntN(2)].dry = w.rng.Float64() * 0.9
		case k < 350:
			w.peers[w.rng.IntN(len(w.peers))].r.end(session.ClosedHere)
		case k < 351:
			w.now += int64(w.rng.IntN(40)) * int64(time.Second)
		case k < 352:
			w.mem.Close()
			w.start(1) // restart of the target
		case k < 353 && w.rng.IntN(3) == 0:
			w.eng[1].Close()
			for range 20 {
				w.step()
			}
			w.mem.Close()
			w.start(1)
		}
		w.step()
	}
	for _, p := range w.ports {
		p.dry = 0
		p.SetFaults(port.Faults{})
	}
	for range 300_000 {
		if w.pending() == 0 {
			break
		}
		w.step()
		w.receive()
	}
	w.check()
}

func (w *world) check() {
	t := w.t
	w.checkFlushes()
	if n := w.pending(); n > 0 {
		t.Errorf("seed %d: %d operations never complete", w.seed, n)
	}
	for i, o := range w.ops {
		if len(o.results) > 1 {
			t.Errorf("seed %d: operation %d completed %d times", w.seed, i, len(o.results))
		}
		if len(o.results) != 1 || !w.strict {
			continue
		}
		if fate := o.results[0].Outcome; o.told > 1 || o.data && fate == Success && o.told == 0 || fate == NotExecuted && o.told > 0 {
			t.Errorf("seed %d: operation %d: fate %v, data %t, but %d events", w.seed, i, fate, o.data, o.told)
		}
		if o.message {
			continue // which has arrived, or is held, or was lost with the target
		}
		for k := range o.n {
			v := binary.LittleEndian.Uint64(w.bytes[8*(o.slot+k):])
			f := o.results[0].Outcome
			if o.waits && v == 2 {
				v = 0
			}
			if v > 1 || f == Success && v != 1 || f == NotExecuted && v != 0 {
				t.Errorf("seed %d: operation %d of %d elements, element %d: %+v but ran %d times", w.seed, i, o.n, k, o.results[0], v)
				break
			}
		}
	}
	// Nothing is left after everybody has closed and time has passed.
	for i, e := range w.eng {
		e.Close()
		for range 300 {
			w.step()
		}
		if !e.Idle() {
			t.Errorf("seed %d: engine %d is not idle: %d ready, %d dirty", w.seed, i, len(e.ready), len(e.dirty))
		}
	}
	w.idle(90*time.Second + 4*w.cfg.Session.GiveUp)
	for i, e := range w.eng {
		if u := e.Usage(); u.Requests.Lent+u.Sessions+u.Parties+len(e.begun) != 0 {
			t.Errorf("seed %d: engine %d: %+v, %d begun at the end", w.seed, i, u, len(e.begun))
		}
	}
	if u := w.exec.Usage(); u.Answers.Lent+u.Holds.Lent+u.Parties+u.Waiting != 0 {
		t.Errorf("seed %d: the executor has %+v at the end", w.seed, u)
	}
	if w.ring.head != w.ring.tail.Load() || !w.ring.Empty() {
		t.Errorf("seed %d: ring not empty", w.seed)
	}
	if u := w.inbox.q.Usage(); u.Inflows > 0 {
		t.Errorf("seed %d: the queue has %+v at the end", w.seed, u)
	}
	w.mem.Close()
}

// anyOp returns an operation that was posted, or nil.
func (w *world) anyOp() any {
	if len(w.ops) == 0 {
		return nil
	}
	return w.ops[len(w.ops)-1-w.rng.IntN(min(len(w.ops), 50))]
}

// seedRange is the first def seeds, or as the environment wants: XDPFAB_SEEDS many, or
// XDPFAB_SEED alone.
func seedRange(def uint64) (from, to uint64) {
	if s := os.Getenv("XDPFAB_SEED"); s != "" {
		v, _ := strconv.ParseUint(s, 10, 64)
		return v, v + 1
	}
	if s := os.Getenv("XDPFAB_SEEDS"); s != "" {
		def, _ = strconv.ParseUint(s, 10, 64)
	}
	return 0, def
}

// Faults, replays, restarts, closes, scarce buffers: conservation.
func TestConservation(t *testing.T) {
	t.Parallel()
	def := uint64(40) // make test-long takes thousands
	if testing.Short() {
		def = 10
	}
	from, to := seedRange(def)
	bad := 0
	for seed := from; seed < to && bad < 5; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { newWorld(t, seed, true).run() }) {
			bad++
		}
	}
}

// idle lets time pass, in steps that do not look as if the engines had been stopped.
func (w *world) idle(d time.Duration) {
	for end := w.now + int64(d); w.now < end; w.now += int64(time.Second) {
		w.step()
	}
	for range 50 {
		w.step()
	}
}
