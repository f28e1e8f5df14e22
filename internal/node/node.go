// SPDX-License-Identifier: Apache-2.0

// Package node is an interface in use: its device, an engine for each queue, the memory
// that peers may address, and the numbers of endpoints with their tenants. Domains, the
// host of guests, and what is resident stand on it.
package node

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/progress"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// drainLimit bounds the time that Close gives the last answers to leave.
const drainLimit = 500 * time.Millisecond

// Owner is whose a node is: the node asks it for what it does not know itself.
type Owner interface {
	// Lost reports the end of the node and its cause.
	Lost(cause error)
	// ShutTenants closes the endpoints and the queued work before the engines end.
	CloseTenants()
	// WakeObjects ends the waits that no engine will end.
	WakeObjects()
	// CloseAll closes the node and everything on it.
	CloseAll() error
	// Roomy is called when messages may find room; see engine.Config.Room.
	Roomy()
}

// residents is the part of the node that the XDP program executes.
type residents interface {
	// Longest and Pads are what engines ask: see engine.Config. Migratable begins the
	// target half of a session that may become resident.
	Longest(p *session.TargetParams) int
	Pads() bool
	Migratable(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served
	// Register registers resident memory, with Node.mu held.
	Register(m *mr.Memory, o mr.Options) (*mr.Region, error)
	// Look counts what the program has applied for peers up to now.
	Look()
	// Count adds the counters of the program.
	Count(all map[string]uint64) error
	// GoOn takes back what a former process left, and Depart is called when the node
	// begins to end.
	GoOn()
	Detach()
	// End is called when the engines have ended and the device is closed.
	End() error
}

// Node is an interface in use: its device, an engine for each queue, the memory that
// peers may address, and the numbers of endpoints.
type Node struct {
	Config   Config
	Place    Place // of the interface; zero for a Pipe
	Owner    Owner
	Dev      Device
	Steppers []*Stepper          // by queue
	Turns    []*progress.Stepper // theirs, each once
	given    atomic.Uint32       // steppers given out, in turn
	journal  *journal            // nil unless the log takes its lines
	memory   []*memory.Memory
	Table    *mr.Table
	Numbers  Numbers // who has which

	targetKeys atomic.Pointer[session.Keys] // of Authorize; nil for none

	Paused   atomic.Bool               // until Resume
	LinkDown atomic.Pointer[string]    // why the interface is down; nil while it is up
	Guests   atomic.Pointer[GuestHost] // nil until there is a host of guests

	End      End // how the node ends: see health.go
	shutOnce sync.Once
	Ending   sync.WaitGroup // a shut under way that the node began by itself

	Mu        sync.Mutex   // held while a region is registered
	Owned     []*mr.Memory // allocated by NewRegion
	Residents residents    // set before run
}

// New returns a node on a device, which is the node's from here on. Before it runs it
// needs a configuration, and what is resident.
func New(dev Device, o Owner) *Node {
	return &Node{Dev: dev, Owner: o, Table: mr.NewTable(), End: End{Done: make(chan struct{})}}
}

// Run puts an engine on each of the device's queues. life names this life of the node to
// its peers; resident is that of what is resident, or 0. A node that is paused takes no
// packets until Resume.
func (n *Node) Run(life, resident uint64) (err error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	n.journal = newJournal(n)
	defer func() {
		if err != nil {
			n.journal.close()
		}
	}()
	var engines []*engine.Engine
	for q, port := range n.Dev.Ports() {
		m := memory.New(n.Table)
		n.memory = append(n.memory, m)
		x, err := executor.New(m, n.Dev.MTU(), 0)
		if err != nil {
			return err
		}
		c := engine.Config{
			GuestRing: n.Dev.GuestRing(),
			Medium:    n.Dev.Medium(),
			Port:      port, Accept: n.accept, Request: n.requested, Keys: n.keysOf,
			Local: n.Dev.MAC(), Sifted: n.Dev.Sifted(), MTU: n.Dev.MTU(), Queue: q, Sessions: n.Config.Sessions,
			Secret: secret, Life: life, Resident: resident, Clock: n.Config.Clock,
			Spread:  n.Config.Spread,
			Journal: n.journal.note(),
			Suspect: n.suspect, Narrow: n.narrow, Widened: n.widened,
			Padding: n.Residents.Pads, Longest: n.Residents.Longest,
			Events: n.EventsOf, Inflow: n.inflowOf, Room: n.Owner.Roomy, Attendant: n.attendantOf,
			Callee: n.calleeOf,
			Serve:  func(now int64, p session.TargetParams) engine.Served { return n.serveSession(x, q, now, p) },
			Session: session.Config{
				Window: n.Config.Window, GiveUp: n.Config.GiveUp,
				RTOMin: n.Config.RTOMin, BaseRTT: n.Config.BaseRTT, IdleRetire: n.Config.IdleRetire,
				Features: wire.Offered,
			},
		}
		n.findOtherQueues(&c)
		e, err := engine.New(c)
		if err != nil {
			return err
		}
		if n.Paused.Load() {
			e.Pause()
		}
		engines = append(engines, e)
	}
	engine.NewGroup(engines)
	n.start(engines)
	n.Dev.Cross(n, engines[0])
	return nil
}

// suspect has the way to a peer that does not answer looked up again.
func (n *Node) suspect(l wire.Link) {
	if l.RemoteIP.IsValid() {
		n.Dev.Silent(l.RemoteIP)
	}
}

// narrow tells that a switch drops the frames of the interface's MTU on the way to a
// peer.
func (n *Node) narrow(l wire.Link, frame int) {
	peer := wire.Addr{MAC: l.Remote, IP: l.RemoteIP}
	go n.Log(slog.LevelWarn, "frames as long as the MTU allows do not pass: those of this peer are short",
		slog.String("interface", n.Dev.Info().Name), slog.Any("peer", peer), slog.Int("mtu", n.Dev.MTU()),
		slog.Int("frame", frame), slog.String("remedy", "raise the MTU of the switches and tunnels on the way, "+
			"or lower the interface's to theirs: ip link set dev "+n.Dev.Info().Name+" mtu N"))
}

// widened tells that those frames pass after all.
func (n *Node) widened(l wire.Link) {
	peer := wire.Addr{MAC: l.Remote, IP: l.RemoteIP}
	go n.Log(slog.LevelInfo, "frames as long as the MTU allows pass now: those of this peer are no longer short",
		slog.String("interface", n.Dev.Info().Name), slog.Any("peer", peer), slog.Int("mtu", n.Dev.MTU()))
}

// NewLife names this life of the domain to its peers. It is never 0.
func NewLife() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// began is the beginning of the process's time.
var began = time.Now()

// Now returns the domain's time, in nanoseconds.
func (n *Node) Now() int64 {
	if n.Config.Clock != nil {
		return n.Config.Clock()
	}
	return int64(time.Since(began))
}

// Resume has a paused node take packets, and serve guests. What a former process left
// and nothing was registered for ends.
func (n *Node) Resume() {
	n.Residents.GoOn()
	if from, is := n.Dev.(interface{ Settle() }); is {
		from.Settle()
	}
	serve := func() {}
	if host := n.Host(); host != nil {
		serve = host.Arrivals()
	}
	n.Paused.Store(false)
	for _, st := range n.Steppers {
		st.Call(st.Eng.Resume)
	}
	serve()
}

// Release frees the resources that need no engine.
func (n *Node) Release() error {
	err := n.closeRegions()
	for _, m := range n.memory {
		m.Close()
	}
	err = errors.Join(err, n.Dev.Close(), n.Residents.End())
	n.journal.close()
	return err
}

// Open returns the cause when the node has ended. The lock of the objects is held
// (Node.mu for regions), so that an object made under it is either refused here or closed
// with the node.
func (n *Node) Open() error { return n.End.Returned() }

// CountPeers counts what a host or the XDP program has applied for peers up to now.
func (n *Node) CountPeers() {
	n.Dev.Look()
	n.Residents.Look()
}

// EndTargets ends the sessions that peers have with an endpoint.
func (n *Node) EndTargets(number uint16) {
	for _, st := range n.Steppers {
		st.Call(func() { st.Eng.EndTargets(number) })
	}
}
