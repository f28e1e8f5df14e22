// SPDX-License-Identifier: Apache-2.0

package xdpfab

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

// owner is whose a node is: the node asks it for what it does not know itself.
type owner interface {
	// lost reports the end of the node and its cause.
	lost(cause error)
	// shutTenants closes the endpoints and the queued work before the engines end.
	shutTenants()
	// wakeObjects ends the waits that no engine will end.
	wakeObjects()
	// CloseAll closes the node and everything on it.
	CloseAll() error
	// roomy is called when messages may find room; see engine.Config.Room.
	roomy()
}

// config is how a node works. The attributes of domains say what the values mean.
type config struct {
	Manual bool // progress
	Alone  bool // the caller's goroutine alone uses the engines; takes Manual
	Spread bool
	Cores  []int
	Spin   time.Duration
	Log    *slog.Logger // nil means that nothing is logged
	Clock  func() int64 // ns, monotonic; nil means the system's

	Window                              int
	GiveUp, RTOMin, BaseRTT, IdleRetire time.Duration

	ProvKey, VirtAddr bool   // of all regions
	AuthKey           []byte // of regions that have none

	ResidentSessions int
	ResidentLeave    bool
}

// residents is the part of the node that the XDP program executes.
type residents interface {
	// longest and pads are what engines ask; see engine.Config. movable begins the target
	// half of a session that may become resident.
	longest(p *session.TargetParams) int
	pads() bool
	movable(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served
	// register registers resident memory, with Node.mu held.
	register(m *mr.Memory, o mr.Options) (*mr.Region, error)
	// look counts what the program has applied for peers up to now.
	look()
	// end is called when the engines have ended and the device is closed.
	end() error
}

// Node is an interface in use: its device, an engine for each queue, the memory that
// peers may address, and the numbers of endpoints.
type Node struct {
	config   config
	place    place // of the interface; zero for a Pipe
	owner    owner
	dev      device
	steppers []*stepper          // by queue
	turns    []*progress.Stepper // theirs, each once
	given    atomic.Uint32       // steppers given out, in turn
	memory   []*memory.Memory
	table    *mr.Table
	numbers  numbers                   // who has which
	paused   atomic.Bool               // until Resume
	guests   atomic.Pointer[guestHost] // nil until there is a host of guests

	end      end // how the node ends: see health.go
	shutOnce sync.Once
	ending   sync.WaitGroup // a shut under way that the node began by itself

	mu        sync.Mutex   // held while a region is registered
	owned     []*mr.Memory // allocated by NewRegion
	residents residents    // set before run
}

// run puts an engine on each of the device's queues. life names this life of the node to
// its peers; resident is that of what is resident, or 0. A node that is paused takes no
// packets until Resume.
func (n *Node) run(life, resident uint64) error {
	beyond, first := n.dev.beyond(n)
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	var engines []*engine.Engine
	for q, port := range n.dev.Ports() {
		m := memory.New(n.table)
		n.memory = append(n.memory, m)
		x, err := executor.New(m, n.dev.MTU(), 0)
		if err != nil {
			return err
		}
		e, err := engine.New(engine.Config{
			Carrier: n.dev.carries(),
			Port:    port, Accept: n.accept, Request: n.requested, Key: n.keyOf,
			Local: n.dev.MAC(), MTU: n.dev.MTU(), Queue: first + q,
			Secret: secret, Life: life, Resident: resident, Clock: n.config.Clock,
			Elsewhere: beyond.elsewhere, Outside: beyond.outside, Spread: n.config.Spread,
			Suspect: n.suspect, Padding: n.residents.pads, Longest: n.residents.longest,
			Events: n.eventsOf, Inflow: n.inflowOf, Room: n.owner.roomy,
			Serve: func(now int64, p session.TargetParams) engine.Served { return n.serveSession(x, q, now, p) },
			Session: session.Config{
				Window: n.config.Window, GiveUp: n.config.GiveUp,
				RTOMin: n.config.RTOMin, BaseRTT: n.config.BaseRTT, IdleRetire: n.config.IdleRetire,
				Features: wire.FeatureMemory | wire.FeatureMessages | wire.FeatureUnordered | wire.FeatureNotices |
					wire.FeatureTaggedAtomics | wire.FeatureRiders | wire.FeaturePadding | wire.FeatureEchoes,
			},
		})
		if err != nil {
			return err
		}
		if n.paused.Load() {
			e.Pause()
		}
		engines = append(engines, e)
	}
	engine.NewGroup(engines)
	n.start(engines)
	n.dev.cross(n, engines[0])
	return nil
}

// suspect has the way to a peer that does not answer looked up again.
func (n *Node) suspect(l wire.Link) {
	if l.RemoteIP.IsValid() {
		n.dev.Silent(l.RemoteIP)
	}
}

// newLife names this life of the domain to its peers. It is never 0.
func newLife() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// began is the beginning of the process's time.
var began = time.Now()

// now returns the domain's time, in nanoseconds.
func (n *Node) now() int64 {
	if n.config.Clock != nil {
		return n.config.Clock()
	}
	return int64(time.Since(began))
}

// release frees the resources that need no engine.
func (n *Node) release() error {
	err := n.closeRegions()
	for _, m := range n.memory {
		m.Close()
	}
	return errors.Join(err, n.dev.Close(), n.residents.end())
}

// open returns the cause when the node has ended. The lock of the objects is held
// (Node.mu for regions), so that an object made under it is either refused here or closed
// with the node.
func (n *Node) open() error { return n.end.returned() }

// countPeers counts what a host or the XDP program has applied for peers up to now.
func (n *Node) countPeers() {
	n.dev.look()
	n.residents.look()
}

// endTargets ends the sessions that peers have with an endpoint.
func (n *Node) endTargets(number uint16) {
	for _, st := range n.steppers {
		st.Call(func() { st.eng.EndTargets(number) })
	}
}
