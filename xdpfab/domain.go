// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
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

// Domain is an interface in use: its queues, each with an engine, and the memory
// that peers may address. It corresponds to fi_domain(3).
type Domain struct {
	node     *Node
	attr     DomainAttr
	fabric   *Fabric
	calls    sync.WaitGroup // asynchronous calls under way; begun under mu
	triggers triggers

	mu        sync.Mutex // taken before Node.mu
	closed    bool
	endpoints map[uint16]*Endpoint
	served    atomic.Pointer[[]*Endpoint] // those that accept sessions; written under mu
	dialer    *Endpoint                   // the endpoint that dialled peers share; made at first use
	events    eventLink                   // BindEQ
	children  map[any]string              // the open objects of the domain, with their names
}

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

// Node is an interface in use: its device, an engine for each queue, the memory that
// peers may address, and the numbers of endpoints.
type Node struct {
	attr     DomainAttr
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
	residence residence    // see resident.go
}

// newDomain puts engines on a device. The domain owns the device from here on, also when
// newDomain fails.
func newDomain(f *Fabric, dev device, attr DomainAttr) (*Domain, error) {
	n := &Node{attr: attr, dev: dev, table: mr.NewTable(), end: end{done: make(chan struct{})}}
	d := &Domain{node: n, attr: attr, fabric: f, endpoints: map[uint16]*Endpoint{}, children: map[any]string{}}
	n.owner = d
	at := homeOf(dev)
	paused := attr.life != 0 || at != nil
	d.attr.life, d.attr.handed, n.residence.home = 0, nil, at
	n.paused.Store(paused)
	d.served.Store(&[]*Endpoint{})
	n.residence.table = n.table
	if err := d.attr.tune(dev); err != nil {
		n.release()
		return nil, err
	}
	n.attr = d.attr
	attr.Window, attr.GiveUp, attr.RTOMin, attr.BaseRTT, attr.IdleRetire = d.attr.Window, d.attr.GiveUp, d.attr.RTOMin, d.attr.BaseRTT, d.attr.IdleRetire
	dev.deliver(guestReceiver{d})
	beyond, first := d.neighbours()
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	life, lasting := cmp.Or(attr.life, newLife()), at.lasting()
	var engines []*engine.Engine
	for q, port := range dev.Ports() {
		m := memory.New(n.table)
		n.memory = append(n.memory, m)
		x, err := executor.New(m, dev.MTU(), 0)
		if err != nil {
			n.release()
			return nil, err
		}
		e, err := engine.New(engine.Config{
			Carrier: dev.carries(),
			Port:    port, Accept: n.accept, Request: n.requested, Key: n.keyOf,
			Local: dev.MAC(), MTU: dev.MTU(), Queue: first + q,
			Secret: secret, Life: life, Resident: lasting, Clock: attr.clock,
			Elsewhere: beyond.elsewhere, Outside: beyond.outside, Spread: attr.Spread,
			Suspect: n.suspect, Padding: n.pads, Longest: n.longest, Events: n.eventsOf, Inflow: n.inflowOf, Room: n.owner.roomy,
			Serve: func(now int64, p session.TargetParams) engine.Served { return n.serveSession(x, q, now, p) },
			Session: session.Config{
				Window: attr.Window, GiveUp: attr.GiveUp,
				RTOMin: attr.RTOMin, BaseRTT: attr.BaseRTT, IdleRetire: attr.IdleRetire,
				Features: wire.FeatureMemory | wire.FeatureMessages | wire.FeatureUnordered | wire.FeatureNotices | wire.FeatureTaggedAtomics | wire.FeatureRiders | wire.FeaturePadding | wire.FeatureEchoes,
			},
		})
		if err != nil {
			n.release()
			return nil, err
		}
		if paused {
			e.Pause()
		}
		engines = append(engines, e)
	}
	engine.NewGroup(engines)
	n.start(engines)
	d.meetNeighbours(engines[0])
	if d.outlives() {
		dev.survive(n.steppers[0], d.moveIn)
	}
	dev.Watch(n.happened)
	if at == nil && attr.ResidentPin != "" || at != nil && !at.vacant { // a Pipe refuses
		if err := n.settleIn(); err != nil {
			return nil, errors.Join(err, d.shut(true))
		}
	}
	return d, nil
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
	if n.attr.clock != nil {
		return n.attr.clock()
	}
	return int64(time.Since(began))
}

// serving returns the endpoint of that number which accepts sessions, or nil.
func (d *Domain) serving(number uint16) *Endpoint {
	ep, _ := d.node.numbers.serving(number).(*Endpoint)
	return ep
}

// Attr returns the attributes in force.
func (d *Domain) Attr() DomainAttr { return d.attr }

// Interface describes the interface and the mode that it is used in.
func (d *Domain) Interface() InterfaceInfo { return InterfaceInfo(d.node.dev.Info()) }

// Name returns the address of the domain's endpoint of the given number on the Ethernet
// segment, as peers pass it to Dial or AddressVector.Insert. See Endpoint.Name.
func (d *Domain) Name(endpoint uint16) string {
	return wire.Addr{MAC: d.node.dev.MAC(), Endpoint: endpoint}.String()
}

// Progress moves a domain with manual progress on by one step of each engine, and returns
// how much there was to do. With automatic progress it only starts the operations that
// were posted with FlagMore.
func (d *Domain) Progress() int {
	n := 0
	for _, t := range d.node.turns {
		n += t.Progress()
	}
	d.node.countPeers()
	return n
}

// countPeers counts what a host or the XDP program has applied for peers up to now.
func (n *Node) countPeers() {
	n.dev.look()
	n.residence.counted.look()
}

// Stats returns every statistic of the domain by name: the engines' counters and the
// interface's (sockets, XDP program). Operations that have completed before the call are
// counted. With manual progress the call makes progress.
func (d *Domain) Stats() (map[string]uint64, error) {
	all, err := d.node.dev.Counters()
	if err != nil {
		return nil, fmt.Errorf("xdpfab: domain on %s: %w", d.node.dev.Info().Name, err)
	}
	for _, st := range d.node.steppers {
		st.Call(st.eng.Publish)
		c := st.eng.Counters()
		c.Each(func(name string, v uint64) { all[name] += v })
	}
	if err := d.node.residence.count(all); err != nil {
		return nil, fmt.Errorf("xdpfab: domain on %s: %w", d.node.dev.Info().Name, err)
	}
	return all, nil
}

// shut closes the domain, unless it has children that must not be closed with it.
func (d *Domain) shut(children bool) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	if err := d.busy(); err != nil && !children {
		d.mu.Unlock()
		return err
	}
	d.closed = true
	d.mu.Unlock()
	d.node.depart()
	d.mu.Lock()
	d.endObjects()
	d.node.end.set(fmt.Errorf("domain on %s: %w", d.node.dev.Info().Name, ErrClosed))
	d.mu.Unlock()
	d.node.dev.part()
	d.node.quiesce()
	d.calls.Wait()
	d.mu.Lock()
	d.events.cut()
	d.mu.Unlock()
	if d.fabric != nil {
		d.fabric.forget(d)
	}
	d.leave()
	err := d.node.release() // from here on the device reports nothing
	d.node.ending.Wait()
	if err != nil {
		return fmt.Errorf("xdpfab: domain on %s: %w", d.node.dev.Info().Name, err)
	}
	return nil
}

// release frees the resources that need no engine.
func (n *Node) release() error {
	err := n.closeRegions()
	for _, m := range n.memory {
		m.Close()
	}
	return errors.Join(err, n.dev.Close(), n.residence.end())
}

// open returns the cause when the node has ended. The lock of the objects is held
// (Node.mu for regions), so that an object made under it is either refused here or closed
// with the node.
func (n *Node) open() error { return n.end.returned() }
