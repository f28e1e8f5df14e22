// SPDX-License-Identifier: Apache-2.0

package share

import (
	"cmp"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

var (
	macHost   = wire.MAC{2, 0, 0, 0, 0, 1}
	macTarget = wire.MAC{2, 0, 0, 0, 0, 2}
	link      = wire.Link{Local: macHost, Remote: macTarget}
)

// world is a host with guests and a target, stepped by the test, in one thread.
type world struct {
	t            testing.TB
	now          int64
	host, target *engine.Engine
	direct       *engine.Ring // of the host's own operations
	peer         *engine.Peer // for them
	table        *mr.Table    // of the target
	exec         *executor.Executor
	guests       []*guest
	cut, idle    bool // the target does not run; the guests do not
	flights      int  // of each guest that comes, at the host; 0 for as many as its ring has entries
}

// guest is an engine whose operations the host takes to the target.
type guest struct {
	*engine.Engine
	guestRing *GuestRing
	hostRing  *HostRing
	hosts     *engine.Ring // the host's, of its operations
	ring      *engine.Ring // of the guest
	peer      *engine.Peer
	theirs    *Segment // the segment as the host has mapped it
	broken    error
}

func newWorld(t testing.TB) *world { return newWorldOf(t, engine.Config{}) }

// newWorldOf is newWorld with settings of the host.
func newWorldOf(t testing.TB, host engine.Config) *world {
	w := &world{t: t, now: 1, table: mr.NewTable()}
	a, b := port.NewMemoryPair(1500, 1)
	m := memory.New(w.table)
	t.Cleanup(m.Close)
	x, err := executor.New(m, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.exec = x
	host.Port, host.Local = a, macHost
	w.host = w.engine(host)
	w.target = w.engine(engine.Config{Port: b, Local: macTarget,
		Serve:  func(now int64, p session.TargetParams) engine.Served { return x.Begin(now, p, nil) },
		Accept: func(uint16, uint64) wire.HelloStatus { return wire.HelloAccepted }})
	w.direct = w.ring(w.host)
	if w.peer, err = w.host.NewPeer(link, 0, 0); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) engine(c engine.Config) *engine.Engine {
	c.MTU, c.Clock = 1500, func() int64 { return w.now }
	c.Session.Features = wire.FeatureMemory | wire.FeatureWaits
	e, err := engine.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	engine.NewGroup([]*engine.Engine{e})
	return e
}

func (w *world) ring(e *engine.Engine) *engine.Ring {
	r, err := engine.NewRing(64, engine.Contexts{})
	if err != nil {
		w.t.Fatal(err)
	}
	e.AddRing(r, nil)
	return r
}

// region registers n bytes at the target, under a key.
func (w *world) region(key uint64, n int) []byte {
	m, err := mr.Alloc(n, mr.AllocOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := w.table.Register(m, mr.Options{Key: &key, Length: n, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if r.Close() != nil || m.Close() != nil {
			w.t.Error("close a region")
		}
	})
	return m.Bytes()
}

// guest attaches another guest, with a peer for the target's endpoint 0. Its weight is 1,
// if no other is given.
func (w *world) guest(s Sizes, weight ...int) *guest {
	segment, err := NewSegment(s)
	if err != nil {
		w.t.Fatal(err)
	}
	g := &guest{}
	if g.theirs, err = s.Map(segment.FD()); err != nil {
		w.t.Fatal(err)
	}
	hosts, guests, err := NewDoorbells()
	if err != nil {
		w.t.Fatal(err)
	}
	g.hostRing = NewHostRing(g.theirs, hosts, w.host, func(err error) { g.broken = err })
	w.host.AddHostRing(g.hostRing, append(weight, 1)[0])
	ring := engine.NewDirect(engine.NewFlights(cmp.Or(w.flights, s.Entries), nil), g.hostRing)
	origin := w.host.NewOrigin(uint16(len(w.guests) + 1))
	origin.Charge(g.hostRing)
	w.host.AddRing(ring, origin)
	number := uint32(0)
	open := 0
	g.guestRing, err = NewGuestRing(segment, guests, func(_ uint64, _ wire.Link, _ uint8, endpoint uint16) (uint32, error) {
		p, err := origin.NewPeer(link, 0, endpoint)
		number++
		open++
		g.hostRing.SetTarget(number, &Target{Ring: ring, Peer: p, Gone: func() { open-- }})
		return number, err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	g.guestRing.Agree(Features)
	g.Engine = w.engine(engine.Config{Port: g.guestRing.Port(), GuestRing: g.guestRing})
	g.hosts, g.ring = ring, w.ring(g.Engine)
	if g.peer, err = g.NewPeer(link, 0, 0); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		g.hostRing.Close()
		w.host.RemoveRing(ring)
		w.host.RemoveHostRing(g.hostRing)
		if open != 0 || g.theirs.Close() != nil || hosts.Close() != nil || g.guestRing.Close() != nil {
			w.t.Errorf("close a guest: %d peers are open", open)
		}
	})
	w.guests = append(w.guests, g)
	return g
}

// step lets everything run for a moment.
func (w *world) step() {
	for _, g := range w.guests {
		if !w.idle {
			g.Step()
		}
	}
	w.host.Step()
	if !w.cut {
		w.target.Step()
	}
	w.now += 1000
}

// outcome is where a completion goes.
type outcome struct {
	n    int
	last engine.Completion
	data []byte // of the result

	later *engine.Later
}

// Complete implements engine.Completer.
func (o *outcome) Complete(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	o.n++
	o.last, o.later = *c, later
	if o.data = append([]byte(nil), s.Result...); s.Result == nil {
		o.data = append(o.data, c.Inline[:min(c.Length, engine.InlineResult)]...)
	}
}

// do posts an operation of which the caller has set all but the context, and returns its
// outcome when it has come.
func (w *world) do(e *engine.Engine, r *engine.Ring, fill func(*engine.Submission)) *outcome {
	o := w.post(e, r, fill)
	w.until("completed", func() bool { return o.n > 0 })
	return o
}

// post is do without waiting for the outcome.
func (w *world) post(e *engine.Engine, r *engine.Ring, fill func(*engine.Submission)) *outcome {
	o := &outcome{}
	s := e.Begin(r)
	if s == nil {
		w.t.Fatal("no room")
	}
	s.Result, s.Context = nil, o
	fill(s)
	e.Submit(r)
	return o
}

// until steps until something holds.
func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	for i := 0; !cond(); i++ {
		if w.step(); i > 100000 {
			w.t.Fatalf("still not: %s", what)
		}
	}
}
