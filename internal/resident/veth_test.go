// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// link is two real interfaces: an initiator at one, and at the other a target that serves
// resident sessions, or ordinary ones.
type link struct {
	*world
	ifs  [2]*port.Interface
	pair *testnet.Pair
}

func newLink(t testing.TB, resident bool) *link {
	t.Helper()
	testnet.Require(t)
	l := &link{world: &world{t: t}, pair: testnet.NewPair(t, testnet.Options{})}
	for i, side := range []*testnet.Side{l.pair.A, l.pair.B} {
		err := side.Do(func() (err error) {
			l.ifs[i], err = port.Open(t.Context(), side.IfName, port.Options{UDP: true, Execute: i == 1})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.ifs[i].Close() })
	}
	sockets, counters := l.ifs[1].Program().Shared()
	x := mustLoad(t, Config{Sessions: 4, Sockets: sockets, Counters: counters})
	l.x = x
	table := mr.NewTable()
	l.register(x, table)
	local := memory.New(table)
	t.Cleanup(local.Close)
	server, err := x.NewServer(local, 0, func() int64 { return l.b.Lived() })
	if err != nil {
		t.Fatal(err)
	}
	serve := func(now int64, p session.TargetParams) engine.Served {
		s, err := server.Begin(now, p)
		if l.serverErr = err; err != nil {
			return nil
		}
		return s
	}
	if !resident {
		serve = ordinary(t, local)
	} else if err := l.ifs[1].Program().SetExecutor(x.Program()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	l.a, l.b = l.realEngine(0, began, nil), l.realEngine(1, began, serve)
	if l.ring, err = engine.NewRing(256, engine.Contexts{}); err != nil {
		t.Fatal(err)
	}
	l.a.AddRing(l.ring, nil)
	return l
}

func (l *link) realEngine(i int, began time.Time, serve func(int64, session.TargetParams) engine.Served) *engine.Engine {
	e, err := engine.New(engine.Config{
		Port: l.ifs[i].Queues()[0], Local: l.ifs[i].MAC(), MTU: 1500, Serve: serve, Clock: func() int64 { return int64(time.Since(began)) },
		Accept:  func(uint16, uint64) wire.HelloStatus { return wire.HelloAccepted },
		Session: session.Config{Features: wire.FeaturePadding}, Padding: func() bool { return l.x != nil },
	})
	if err != nil {
		l.t.Fatal(err)
	}
	engine.NewGroup([]*engine.Engine{e})
	return e
}

// dial opens a session by a first operation, stepping both engines.
func (l *link) dial(kind wire.Kind, o *outcomes) *engine.Peer {
	l.t.Helper()
	to := wire.Link{Kind: kind, Local: l.ifs[0].MAC(), Remote: l.ifs[1].MAC()}
	switch kind {
	case wire.UDP4:
		to.LocalIP, to.RemoteIP = l.pair.A.IP4, l.pair.B.IP4
	case wire.UDP6:
		to.LocalIP, to.RemoteIP = l.pair.A.IP6, l.pair.B.IP6
	}
	p, err := l.a.NewPeer(to, 0, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	want := o.n + 1
	l.add(p, o, residentKey, 0, atomic.Uint64, nil)
	l.await(func() bool { l.b.Step(); return o.n == want })
	return p
}

// await steps the initiator until something has happened.
func (l *link) await(done func() bool) {
	l.t.Helper()
	for end := time.Now().Add(testnet.Patience); !done(); {
		if l.a.Step() == 0 && time.Now().After(end) {
			l.t.Fatalf("nothing happens any more (%v)", l.serverErr)
		}
	}
}

// A target that nobody steps answers by XDP, over each encapsulation.
func TestAnswersInXDP(t *testing.T) {
	l := newLink(t, true)
	var o outcomes
	word, n := uint64(0), 0
	for kind := range wire.NumKinds {
		p := l.dial(kind, &o)
		word++
		for range 500 {
			result := make([]byte, 8)
			l.add(p, &o, residentKey, 0, atomic.Uint64, result)
			want := o.n + 1
			l.await(func() bool { return o.n == want })
			if got := binary.LittleEndian.Uint64(result); got != word || o.bad != 0 {
				t.Fatalf("%v: fetched %d, want %d: %+v", kind, got, word, o.last)
			}
			word++
			n++
		}
	}
	if c, err := l.ifs[1].Counters(); err != nil || c["xdp_executed"] < uint64(n) || c["xdp_redirect"] > 100 {
		t.Errorf("%v, counters %v, want at least %d executed", err, c, n)
	}
}

// Answers that are much longer than what was asked leave without user space too: the
// initiator makes room for them.
func TestLongAnswersInXDP(t *testing.T) {
	l := newLink(t, true)
	var o outcomes
	word := uint64(0)
	for kind := range wire.NumKinds {
		p := l.dial(kind, &o)
		word++
		results := make([]byte, 8*160)
		want := o.n + 160
		for i := range 160 { // they leave as one frame
			l.add(p, &o, residentKey, 0, atomic.Uint64, results[8*i:8*i+8])
		}
		l.await(func() bool { return o.n == want })
		for i := range uint64(160) {
			if got := binary.LittleEndian.Uint64(results[8*i:]); got != word || o.bad != 0 {
				t.Fatalf("%v: the fetch-add of number %d fetched %d, want %d: %+v", kind, i, got, word, o.last)
			}
			word++
		}
		op := l.ring.Claim()
		op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), &o, residentKey, 0, 160
		op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, wire.OpRead, uint8(atomic.Uint64), 0
		op.SetOperands(nil, nil)
		op.Result = results
		op.Publish()
		l.await(func() bool { return o.n == want+1 })
		if got := binary.LittleEndian.Uint64(results); got != word || o.bad != 0 {
			t.Errorf("%v: read %d, want %d: %+v", kind, got, word, o.last)
		}
	}
	if c, err := l.ifs[1].Counters(); err != nil || c["xdp_redirect"] > 100 {
		t.Errorf("%v, counters %v: want few frames for user space", err, c)
	}
}

// BenchmarkRoundTrip measures a fetch-add and its answer, with the target's engine
// asleep, or stepped by the same thread if sessions are ordinary.
func BenchmarkRoundTrip(b *testing.B) {
	for _, resident := range []bool{true, false} {
		b.Run(map[bool]string{true: "resident", false: "ordinary"}[resident], func(b *testing.B) {
			l := newLink(b, resident)
			var o outcomes
			p := l.dial(wire.Ethernet, &o)
			result := make([]byte, 8)
			var took []time.Duration
			b.ResetTimer()
			for range b.N {
				began := time.Now()
				want := o.n + 1
				l.add(p, &o, residentKey, 0, atomic.Uint64, result)
				for o.n < want {
					l.a.Step()
					if !resident {
						l.b.Step()
					}
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// ordinary serves sessions by the executor in Go.
func ordinary(t testing.TB, local *memory.Memory) func(int64, session.TargetParams) engine.Served {
	x, err := executor.New(local, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func(now int64, p session.TargetParams) engine.Served { return x.Begin(now, p, nil) }
}
