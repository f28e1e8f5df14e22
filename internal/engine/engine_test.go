// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

var (
	macA = wire.MAC{2, 0, 0, 0, 0, 0xa}
	macB = wire.MAC{2, 0, 0, 0, 0, 0xb}
)

// node is an engine on a memory port, stepped by the test.
type node struct {
	*engine.Engine
	port  *port.Memory // nil if it is another one
	table *mr.Table
	mem   *memory.Memory
	exec  *executor.Executor
	ring  *engine.Ring
	told  *events         // nil: its endpoints take no events
	inbox *matching.Queue // nil: its endpoints receive no messages
}

// bench is two nodes and the clock they share.
type bench struct {
	t       testing.TB
	a, b    *node
	now     int64
	looks   int // at the clock, by both
	idle    int // steps that had nothing to do, since the last that had
	operand [8]byte
	change  func(*engine.Config) // of every node; nil for none
	mtu     int
}

func newBench(t testing.TB, seed uint64, cfg session.Config) *bench {
	return newBenchOf(t, seed, 1500, cfg, nil)
}

func newBenchOf(t testing.TB, seed uint64, mtu int, cfg session.Config, change func(*engine.Config)) *bench {
	bn := &bench{t: t, now: 1, mtu: mtu, change: change}
	pa, pb := port.NewMemoryPair(mtu, seed)
	bn.a, bn.b = bn.node(pa, macA, cfg), bn.node(pb, macB, cfg)
	return bn
}

func (bn *bench) node(p engine.Port, mac wire.MAC, cfg session.Config) *node {
	return bn.nodeThat(p, mac, cfg, func(*engine.Config) {})
}

// nodeThat is node with a change of the engine's configuration.
func (bn *bench) nodeThat(p engine.Port, mac wire.MAC, cfg session.Config, change func(*engine.Config)) *node {
	table := mr.NewTable()
	cable, _ := p.(*port.Memory)
	n := &node{port: cable, table: table, mem: memory.New(table)}
	var err error
	if n.exec, err = executor.New(n.mem, bn.mtu, 0); err != nil {
		bn.t.Fatal(err)
	}
	c := engine.Config{
		Port: p, Local: mac, MTU: bn.mtu, Session: cfg,
		Serve: func(now int64, p session.TargetParams) engine.Served { return n.exec.Begin(now, p, nil) },
		Accept: func(e uint16, _ uint64) wire.HelloStatus {
			if e == 0 {
				return wire.HelloAccepted
			}
			return wire.HelloNoEndpoint
		},
		Events: func(uint16) engine.Events {
			if n.told == nil {
				return nil
			}
			return n.told
		},
		Inflow: func(_ uint16, from wire.Addr) session.Inflow {
			if n.inbox == nil {
				return nil
			}
			return n.inbox.NewInflow(from)
		},
		Clock: func() int64 { bn.looks++; return bn.now },
	}
	if change(&c); bn.change != nil {
		bn.change(&c)
	}
	if n.Engine, err = engine.New(c); err != nil {
		bn.t.Fatal(err)
	}
	engine.NewGroup([]*engine.Engine{n.Engine})
	if n.ring, err = engine.NewRing(256, engine.Contexts{}); err != nil {
		bn.t.Fatal(err)
	}
	n.AddRing(n.ring, nil)
	bn.t.Cleanup(n.mem.Close)
	return n
}

// region registers n bytes under key at b.
func (bn *bench) region(key uint64, n int, access mr.Access) []byte {
	bn.t.Helper()
	m, err := mr.Alloc(n, mr.AllocOptions{})
	if err != nil {
		bn.t.Fatal(err)
	}
	r, err := bn.b.table.Register(m, mr.Options{Key: &key, Length: n, Access: access})
	if err != nil {
		bn.t.Fatal(err)
	}
	bn.t.Cleanup(func() { _ = r.Close(); _ = m.Close() })
	return m.Bytes()
}

func (bn *bench) peer(endpoint uint16) *engine.Peer {
	p, err := bn.a.NewPeer(wire.Link{Local: macA, Remote: macB}, 0, endpoint)
	if err != nil {
		bn.t.Fatal(err)
	}
	return p
}

// step lets both engines run. When neither had anything to do in two steps, time
// leaps to the next moment at which one has.
func (bn *bench) step() {
	if bn.a.Step()+bn.b.Step() > 0 {
		bn.now, bn.idle = bn.now+1000, 0
		return
	}
	if bn.now += int64(time.Millisecond); bn.idle < 2 {
		bn.idle++
		return
	}
	next := bn.a.NextDue()
	if b := bn.b.NextDue(); next == 0 || b != 0 && b < next {
		next = b
	}
	if next > bn.now {
		bn.now, bn.idle = next, 0
	}
}

// results collects completions.
type results struct {
	n     int
	last  engine.Result
	fates [4]int
}

func (r *results) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	res := c.Result(later)
	r.n++
	r.last = res
	r.fates[res.Outcome]++
}

func (bn *bench) until(done func() bool) {
	bn.t.Helper()
	for i := range 2_000_000 {
		if done() {
			return
		}
		bn.step()
		if i%16 == 0 {
			bn.check()
		}
	}
	bn.t.Fatal("nothing happens any more")
}

// check looks at the books of everybody.
func (bn *bench) check() {
	for _, n := range []*node{bn.a, bn.b} {
		if err := errors.Join(n.Check(), n.exec.Check()); err != nil {
			bn.t.Fatal(err)
		}
	}
}

func (bn *bench) fetchAdd(p *engine.Peer, r engine.Completer, key, offset, v uint64, result []byte) bool {
	op := bn.a.ring.Claim()
	if op == nil {
		return false
	}
	binary.LittleEndian.PutUint64(bn.operand[:], v)
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, key, offset, 1
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0
	if result == nil {
		op.Verb = wire.VerbAtomic
	}
	op.SetOperands(bn.operand[:], nil)
	op.Result = result
	op.Publish()
	return true
}

// Every operation runs once and in order, whatever the network does.
func TestExactlyOnceInOrder(t *testing.T) {
	faults := map[string]port.Faults{
		"none":    {},
		"loss":    {Loss: 0.2},
		"dup":     {Duplicate: 0.5},
		"reorder": {Reorder: 0.5},
		"corrupt": {Corrupt: 0.2},
		"all":     {Loss: 0.1, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.05},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				bn := newBench(t, seed, session.Config{GiveUp: time.Hour})
				mem := bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
				bn.a.port.SetFaults(f)
				bn.b.port.SetFaults(f)
				p := bn.peer(0)
				const n = 2000
				var r results
				out := make([][8]byte, n)
				for i := 0; i < n; {
					for i < n && bn.fetchAdd(p, &r, 7, 8, 1, fetchOrNot(i, out)) {
						i++
					}
					bn.step()
				}
				bn.until(func() bool { return r.n == n })
				if got := binary.LittleEndian.Uint64(mem[8:]); got != n || r.fates[engine.Success] != n {
					t.Fatalf("seed %d: sum %d, successes %d, want %d", seed, got, r.fates[engine.Success], n)
				}
				for i := range out {
					if got := binary.LittleEndian.Uint64(out[i][:]); i%3 != 0 && got != uint64(i) {
						t.Fatalf("seed %d: operation %d fetched %d: out of order", seed, i, got)
					}
				}
			}
		})
	}
}

// fetchOrNot makes every third operation a base one.
func fetchOrNot(i int, out [][8]byte) []byte {
	if i%3 == 0 {
		return nil
	}
	return out[i][:]
}

func TestRefusalsNeverRan(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	bn.region(2, 64, mr.RemoteRead)
	p := bn.peer(0)
	cases := []struct {
		name        string
		key, offset uint64
		want        wire.Status
	}{
		{"unknown key", 99, 0, wire.StatusNoKey},
		{"no right", 2, 0, wire.StatusNoAccess},
		{"beyond the end", 1, 64, wire.StatusOutOfBounds},
		{"far beyond the end", 1, ^uint64(7), wire.StatusOutOfBounds},
		{"misaligned", 1, 4, wire.StatusMisaligned},
	}
	for _, c := range cases {
		var r results
		var out [8]byte
		bn.fetchAdd(p, &r, c.key, c.offset, 1, out[:])
		bn.until(func() bool { return r.n == 1 })
		if want := (engine.Result{Outcome: engine.NotExecuted, Status: c.want}); r.last != want {
			t.Errorf("%s: %+v, want %+v", c.name, r.last, want)
		}
	}
	var r results
	bn.fetchAdd(bn.peer(5), &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	if want := (engine.Result{Outcome: engine.NotExecuted, Reason: session.RefusedEndpoint}); r.last != want {
		t.Errorf("no such endpoint: %+v, want %+v", r.last, want)
	}
}

// An array longer than many frames is one operation; a refused one leaves no
// element changed.
func TestLongArray(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	const n = 20_000
	mem := bn.region(1, 8*n, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	operand, result := make([]byte, 8*n), make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint64(operand[8*i:], uint64(i))
		binary.LittleEndian.PutUint64(mem[8*i:], uint64(2*i))
	}
	post := func(offset uint64) results {
		var r results
		op := bn.a.ring.Claim()
		op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), &r, 1, offset, n
		op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0
		op.SetOperands(operand, nil)
		op.Result = result
		op.Publish()
		bn.until(func() bool { return r.n == 1 })
		return r
	}
	if r := post(8); r.last != (engine.Result{Outcome: engine.NotExecuted, Status: wire.StatusOutOfBounds}) {
		t.Fatalf("one element too many: %+v", r.last)
	}
	if r := post(0); r.last != (engine.Result{}) {
		t.Fatalf("%+v", r.last)
	}
	for i := range n {
		was, is := binary.LittleEndian.Uint64(result[8*i:]), binary.LittleEndian.Uint64(mem[8*i:])
		if was != uint64(2*i) || is != uint64(3*i) {
			t.Fatalf("element %d: was %d, is %d, want %d and %d", i, was, is, 2*i, 3*i)
		}
	}
}

// A restarted target does not know the session: what was in flight may have run,
// and the next operation finds its way to the new life.
func TestTargetRestart(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	old := bn.b
	bn.b = bn.node(old.port, macB, session.Config{})
	mem := bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 2 })
	if want := (engine.Result{Outcome: engine.Restarted, Reason: session.PeerRestarted}); r.last != want {
		t.Fatalf("after the restart: %+v, want %+v", r.last, want)
	}
	bn.fetchAdd(p, &r, 1, 0, 5, nil)
	bn.until(func() bool { return r.n == 3 })
	if got := binary.LittleEndian.Uint64(mem); r.last.Outcome != engine.Success || got != 5 {
		t.Fatalf("new life: %+v, sum %d, want success and 5", r.last, got)
	}
}

// After a partition that outlasted the give-up time, the session before is
// resumed: each outcome becomes known, and nothing runs late.
func TestPartitionOutlastsGiveUp(t *testing.T) {
	for seed := range uint64(40) {
		bn := newBench(t, seed, session.Config{GiveUp: 200 * time.Millisecond})
		mem := bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
		p := bn.peer(0)
		var r laters
		out := make([]byte, 8)
		post := func(n int) {
			for i := range n {
				res := out
				if i%2 == 0 {
					res = nil
				}
				for !bn.fetchAdd(p, &r, 1, 0, 1, res) {
					bn.step()
				}
				if i%7 == int(seed%7) {
					bn.step()
				}
			}
		}
		post(20)
		bn.until(func() bool { return r.n == 20 })
		if seed%2 == 0 {
			bn.a.port.SetFaults(port.Faults{Loss: 0.7})
		}
		bn.b.port.SetFaults(port.Faults{Loss: 1})
		post(100)
		bn.until(func() bool { return r.n == 120 })
		bn.a.port.SetFaults(port.Faults{})
		bn.b.port.SetFaults(port.Faults{})
		ran := uint64(20)
		for _, l := range r.later {
			bn.until(func() bool {
				select {
				case <-l.Done():
					return true
				default:
					return false
				}
			})
			switch res, _ := l.Outcome(); res.Outcome {
			case engine.Success:
				ran++
			case engine.NotExecuted:
			default:
				t.Fatalf("seed %d: still %+v", seed, res)
			}
		}
		if got := binary.LittleEndian.Uint64(mem); got != ran {
			t.Fatalf("seed %d: sum %d, but %d are known to have run", seed, got, ran)
		}
		post(10)
		bn.until(func() bool { return r.n == 130 })
		if got := binary.LittleEndian.Uint64(mem); got != ran+10 {
			t.Fatalf("seed %d: sum %d after ten more, want %d", seed, got, ran+10)
		}
	}
}

// A partition hits in the middle of an array. If all of it had been sent, it turns
// out to have succeeded, with every result; if not, it can never be a success.
func TestPartitionInTheMiddleOfAnArray(t *testing.T) {
	for _, c := range []struct {
		n    uint32
		want engine.Outcome
	}{{5_000, engine.Success}, {20_000, engine.Unknown}} {
		bn := newBench(t, 3, session.Config{GiveUp: 200 * time.Millisecond})
		mem := bn.region(1, 8*int(c.n), mr.RemoteRead|mr.RemoteWrite)
		for i := range c.n {
			binary.LittleEndian.PutUint64(mem[8*i:], uint64(i))
		}
		p := bn.peer(0)
		var warm, r laters
		bn.fetchAdd(p, &warm, 1, 0, 0, nil)
		bn.until(func() bool { return warm.n == 1 })
		op := bn.a.ring.Claim()
		op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), &r, 1, 0, c.n
		op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0
		op.SetOperands(make([]byte, 8*c.n), nil)
		op.Result = make([]byte, 8*c.n)
		op.Publish()
		for bn.b.port.Sent < 20 { // some answers arrive, the rest is lost
			bn.step()
		}
		bn.b.port.SetFaults(port.Faults{Loss: 1})
		bn.until(func() bool { return r.n == 1 })
		bn.b.port.SetFaults(port.Faults{})
		if len(r.later) != 1 || r.last.Outcome != engine.Unknown {
			t.Fatalf("%d elements: %+v", c.n, r.last)
		}
		l := r.later[0]
		bn.until(func() bool {
			select {
			case <-l.Done():
				return true
			default:
				return false
			}
		})
		res, data := l.Outcome()
		if res.Outcome != c.want {
			t.Fatalf("%d elements: resolved to %+v, want fate %d", c.n, res, c.want)
		}
		for i := range c.n {
			if got := binary.LittleEndian.Uint64(data[8*i:]); c.want == engine.Success && got != uint64(i) {
				t.Fatalf("element %d fetched %d", i, got)
			}
		}
	}
}

// laters collects completions and where unknown ones will be cleared up.
type laters struct {
	results
	later []*engine.Later
}

func (l *laters) Complete(op *engine.Submission, c *engine.Completion, later *engine.Later) {
	r := c.Result(later)
	l.results.Complete(op, c, later)
	if r.Later != nil {
		l.later = append(l.later, r.Later)
	}
}

// A target that closes tells which operations never ran.
func TestTargetCloses(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	bn.b.Close()
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 2 })
	if want := (engine.Result{Outcome: engine.NotExecuted, Reason: session.PeerClosed}); r.last != want {
		t.Errorf("while closing: %+v, want %+v", r.last, want)
	}
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 3 })
	if want := (engine.Result{Outcome: engine.NotExecuted, Reason: session.RefusedClosing}); r.last != want {
		t.Errorf("afterwards: %+v, want %+v", r.last, want)
	}
}

// A fenced operation leaves only after all before it have completed.
func TestFence(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var warm, before, fenced results
	bn.fetchAdd(p, &warm, 1, 0, 1, nil)
	bn.until(func() bool { return warm.n == 1 })
	check := checker{before: &before, r: &fenced, t: t}
	for range 3 {
		bn.fetchAdd(p, &before, 1, 0, 1, nil)
	}
	sent := bn.a.port.Sent
	op := bn.a.ring.Claim()
	op.Peer, op.Context, op.Key, op.Count, op.Offset = p.ID(), &check, 1, 1, 0
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbAtomic, uint8(atomic.Sum), uint8(atomic.Uint64), engine.FlagFence
	op.SetOperands(make([]byte, 8), nil)
	op.Publish()
	bn.until(func() bool { return fenced.n == 1 })
	if got := bn.a.port.Sent - sent; got < 2 {
		t.Errorf("%d frames for two groups of operations, want a frame of its own for the fenced one", got)
	}
}

// checker asserts that everything before has completed.
type checker struct {
	before, r *results
	t         *testing.T
}

func (c *checker) Complete(s *engine.Submission, done *engine.Completion, later *engine.Later) {
	if c.before.n != 3 {
		c.t.Errorf("fenced operation completed after %d of 3 earlier ones", c.before.n)
	}
	c.r.Complete(s, done, later)
}

func TestTalkingToOneself(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.b.table, bn.a.table = bn.a.table, bn.b.table // regions at a
	mem := bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p, err := bn.a.NewPeer(wire.Link{Local: macA, Remote: macA}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var r results
	for range 100 {
		bn.fetchAdd(p, &r, 1, 0, 1, nil)
	}
	bn.until(func() bool { return r.n == 100 })
	if got := binary.LittleEndian.Uint64(mem); got != 100 || bn.a.port.Sent != 0 {
		t.Errorf("sum %d, want 100; %d packets on the wire, want 0", got, bn.a.port.Sent)
	}
}

// Posting, directly and by the ring, and completing allocate nothing.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	out := make([]byte, 8)
	direct := func() {
		op := bn.a.Begin(bn.a.ring)
		op.Peer, op.Context, op.Key, op.Offset, op.Count, op.Result = p.ID(), &r, 1, 0, 1, out
		op.Verb, op.Opcode, op.Datatype = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64)
		op.SetInline(bn.operand[:], nil)
		bn.a.Submit(bn.a.ring)
	}
	for name, post := range map[string]func(){"directly": direct, "by the ring": func() { bn.fetchAdd(p, &r, 1, 0, 1, out) }} {
		round := func() {
			r.n = 0
			for range 32 {
				post()
			}
			for r.n < 32 {
				bn.step()
			}
		}
		for range 200 { // fill the pools
			round()
		}
		if n := testing.AllocsPerRun(200, round); n != 0 {
			t.Errorf("%s: %v allocations for 32 operations, want 0", name, n)
		}
	}
}

func BenchmarkFetchAdd(b *testing.B) {
	for _, window := range []int{1, 240} {
		b.Run(map[int]string{1: "window=1", 240: "window=240"}[window], func(b *testing.B) {
			bn := newBench(b, 1, session.Config{})
			bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
			p := bn.peer(0)
			var r results
			out := make([]byte, 8)
			b.ReportAllocs()
			posted := 0
			for b.Loop() {
				for posted-r.n >= window || !bn.fetchAdd(p, &r, 1, 0, 1, out) {
					bn.step()
				}
				posted++
			}
		})
	}
}
