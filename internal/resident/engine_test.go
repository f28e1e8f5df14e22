// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// nic is a port before which the program runs, as on an interface.
type nic struct {
	*port.Memory
	t        testing.TB
	x        *Executor
	sent, up int // packets that the program answered, and that it left to user space
	keep     [][]byte
	mute     bool // the driver drops what the program sends
	longest  int  // packet that came
	requests int  // bytes of the longest request that came
}

func (n *nic) Receive(b [][]byte) int {
	for _, packet := range b[:n.Memory.Receive(b)] {
		n.longest = max(n.longest, len(packet))
		if frame, _, reason := wire.Decap(packet); reason == wire.ReasonOK && wire.Type(frame[0]&15) == wire.Request {
			n.requests = max(n.requests, len(packet))
		}
		opts := ebpf.RunOptions{Data: packet, DataOut: make([]byte, 4096)}
		action, err := n.x.Program().Run(&opts)
		if err != nil {
			n.t.Fatalf("BPF_PROG_TEST_RUN of %d bytes: %v", len(packet), err)
		}
		switch action {
		case xdpTX:
			n.sent++
			if n.mute {
				continue
			}
			n.Memory.Send(copy(n.Buffer(), packetOf(action, opts.DataOut)))
		case xdpRedirect:
			n.up++
			n.keep = append(n.keep, append([]byte(nil), packet...))
		}
	}
	k := copy(b, n.keep)
	n.keep = n.keep[k:]
	return k
}

// world is an initiator, and a target whose sessions are resident, or not.
type world struct {
	t         testing.TB
	a, b      *engine.Engine
	nic       *nic
	pa        *port.Memory
	x         *Executor
	absent    bool // there is no process at the target
	ring      *engine.Ring
	now       int64
	idle      int
	words     []byte // of region residentKey
	ordinary  []byte // of region ordinaryKey, which the program does not know
	serverErr error
	operand   [8]byte
}

const (
	residentKey = 1
	ordinaryKey = 2
)

var macs = [2]wire.MAC{{2, 0, 0, 0, 0, 0xa}, {2, 0, 0, 0, 0, 0xb}}

func newWorld(t testing.TB, seed uint64) *world { return newWorldOf(t, seed, 1500) }

func newWorldOf(t testing.TB, seed uint64, mtu int) *world {
	t.Helper()
	x := mustLoad(t, Config{Sessions: 4})
	addSocket(t, x)
	w := &world{t: t, now: 1, x: x}
	pa, pb := port.NewMemoryPair(mtu, seed)
	w.pa, w.nic = pa, &nic{Memory: pb, t: t, x: x}
	table := mr.NewTable()
	w.register(x, table)
	local := memory.New(table)
	t.Cleanup(local.Close)
	server, err := x.NewServer(local, 0, func() int64 { return w.b.Lived() })
	if err != nil {
		t.Fatal(err)
	}
	features := session.Config{GiveUp: time.Hour}
	if mtu > 1500 {
		features.Features = wire.FeatureEchoes | wire.FeatureLongProbes
	}
	w.a = w.engine(engine.Config{Port: pa, Local: macs[0], MTU: mtu, Session: features})
	w.b = w.engine(engine.Config{
		Port: w.nic, Local: macs[1], MTU: mtu, Session: features,
		Accept:  func(uint16, uint64) wire.HelloStatus { return wire.HelloAccepted },
		Longest: func(*session.TargetParams) int { return MaxFrame },
		Serve: func(now int64, p session.TargetParams) engine.Served {
			s, err := server.Begin(now, p)
			if w.serverErr = err; err != nil {
				return nil
			}
			return s
		},
	})
	if w.ring, err = engine.NewRing(256, engine.Contexts{}); err != nil {
		t.Fatal(err)
	}
	w.a.AddRing(w.ring, nil)
	return w
}

func (w *world) engine(c engine.Config) *engine.Engine {
	c.Clock = func() int64 { return w.now }
	e, err := engine.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	engine.NewGroup([]*engine.Engine{e})
	return e
}

// register makes a region of each sort. Both executors know the resident one.
func (w *world) register(x *Executor, table *mr.Table) {
	m, err := NewMemory("words", 4096)
	if err != nil {
		w.t.Fatal(err)
	}
	w.words = m.Bytes()
	w.ordinary = make([]byte, 4096)
	for key, b := range map[uint64][]byte{residentKey: w.words, ordinaryKey: w.ordinary} {
		of, err := mr.Adopt(b)
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := table.Register(of, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
		if err != nil {
			w.t.Fatal(err)
		}
		if key == residentKey {
			if err := x.Register(m, Region{Key: key, Length: len(b), Incarnation: r.Incarnation(), Access: RemoteRead | RemoteWrite}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) until(done func() bool) {
	w.t.Helper()
	for range 2_000_000 {
		if done() {
			return
		}
		w.step()
	}
	w.t.Fatalf("nothing happens any more (%v)", w.serverErr)
}

// step lets both engines run; when they have nothing to do, time passes.
func (w *world) step() {
	work := w.a.Step()
	if w.absent {
		var packets [32][]byte
		if w.nic.Receive(packets[:]) > 0 {
			w.t.Fatal("a frame for user space, and there is none")
		}
	} else {
		work += w.b.Step()
	}
	if work > 0 {
		w.now, w.idle = w.now+1000, 0
		return
	}
	if w.now += int64(time.Millisecond); w.idle < 2 {
		w.idle++
		return
	}
	next := w.a.NextDue()
	if b := w.b.NextDue(); !w.absent && (next == 0 || b != 0 && b < next) {
		next = b
	}
	if next > w.now {
		w.now, w.idle = next, 0
	}
	if err := errors.Join(w.a.Check(), w.b.Check()); err != nil {
		w.t.Fatal(err)
	}
}

type outcomes struct {
	n, bad int
	last   engine.Result
}

func (o *outcomes) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	o.n++
	if o.last = c.Result(later); o.last.Outcome != engine.Success {
		o.bad++
	}
}

// add posts a fetch-add of 1, or of 1.0.
func (w *world) add(p *engine.Peer, o *outcomes, key, offset uint64, dt atomic.Datatype, result []byte) bool {
	op := w.ring.Claim()
	if op == nil {
		return false
	}
	binary.LittleEndian.PutUint64(w.operand[:], 1)
	if dt == atomic.Double {
		binary.LittleEndian.PutUint64(w.operand[:], 0x3ff0000000000000)
	}
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), o, key, offset, 1
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(dt), 0
	if result == nil {
		op.Verb = wire.VerbAtomic
	}
	op.SetOperands(w.operand[:], nil)
	op.Result = result
	op.Publish()
	return true
}

// One session of a real initiator: each operation runs once and in order, whatever the
// network does, be it executed by the program or, because it is of another datatype or
// another region, by user space.
func TestExactlyOnceInOrder(t *testing.T) {
	for name, f := range map[string]port.Faults{
		"none": {}, "loss": {Loss: 0.2}, "duplicates": {Duplicate: 0.5}, "reordering": {Reorder: 0.5},
		"all": {Loss: 0.1, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.05},
	} {
		for _, mixed := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", mixed"}[mixed], func(t *testing.T) {
				w := newWorld(t, 7)
				p, err := w.a.NewPeer(wire.Link{Local: macs[0], Remote: macs[1]}, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				w.pa.SetFaults(f)
				w.nic.SetFaults(f)
				w.exactlyOnce(p, mixed)
				t.Logf("the program answered %d packets, and left %d to user space", w.nic.sent, w.nic.up)
				if !mixed && w.nic.sent < 10 {
					t.Errorf("the program answered only %d packets", w.nic.sent)
				}
			})
		}
	}
}

// exactlyOnce adds to three words in a random order, and compares each result.
func (w *world) exactlyOnce(p *engine.Peer, mixed bool) {
	w.t.Helper()
	const n = 3000
	rng := rand.New(rand.NewPCG(1, 1))
	kinds := []struct {
		key uint64
		dt  atomic.Datatype
	}{{residentKey, atomic.Uint64}, {ordinaryKey, atomic.Uint64}, {residentKey, atomic.Double}}
	counts, results, want := [3]uint64{}, make([][]byte, n), make([]uint64, n)
	var o outcomes
	for i := range n {
		k := 0
		if mixed && rng.IntN(8) == 0 {
			k = 1 + rng.IntN(2)
		}
		results[i] = make([]byte, 8)
		if want[i] = counts[k]; k == 2 {
			want[i] = 0
		}
		counts[k]++
		w.until(func() bool { return w.add(p, &o, kinds[k].key, uint64(8*k), kinds[k].dt, results[i]) })
		if rng.IntN(10) == 0 {
			w.step()
		}
		if k == 2 {
			results[i] = make([]byte, 8)
		}
	}
	w.until(func() bool { return o.n == n })
	for i := range n {
		if got := binary.LittleEndian.Uint64(results[i]); o.bad > 0 || got != want[i] {
			w.t.Fatalf("operation %d fetched %d, want %d; %d failed, the last %+v", i, got, want[i], o.bad, o.last)
		}
	}
	le := binary.LittleEndian
	if a, b, c := le.Uint64(w.words), le.Uint64(w.ordinary[8:]), math.Float64frombits(le.Uint64(w.words[16:])); a != counts[0] || b != counts[1] || c != float64(counts[2]) {
		w.t.Errorf("the words hold %d, %d and %v, want %v", a, b, c, counts)
	}
}
