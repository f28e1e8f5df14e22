// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Endpoint posts operations, and accepts the sessions of peers. It is the reliable
// datagram endpoint (FI_EP_RDM) of fi_endpoint(3), or, as EndpointAttr.Type says, a
// connected one (FI_EP_MSG). Any number of goroutines may post at
// the same time. The operations of one endpoint to one peer apply in the order posted,
// unless EndpointAttr.MsgOrder says that none is needed.
type Endpoint struct {
	*endpoint
	opFlags atomic.Uint64 // OpFlags that FlagDefaults stands for in posts by this handle
	ended   atomic.Bool   // of an alias; written under mu
}

// endpoint is what all handles of an endpoint share: see Endpoint.Alias.
type endpoint struct {
	handle Endpoint // the one that NewEndpoint has made, which completions and events name
	dom    *Domain
	attr   EndpointAttr
	number uint16
	// identity is that of its operations' origin at the host of a domain that has one.
	identity uint64
	key      *session.Key // nil for none
	stepper  *node.Stepper
	ring     *engine.Ring
	latest   latest

	mu    sync.Mutex    // guards binding, enabling, and the making of peers
	phase atomic.Uint32 // one of the phases below, which follow each other; stored under mu
	av    *AddressVector
	cq    *CompletionQueue
	recv  *CompletionQueue // of the events of peers; it may be the same
	// selective means that only failures, and operations with FlagCompletion, make
	// entries in cq; selectiveRecv says the same of receives and recv.
	selective     bool
	selectiveRecv bool
	accepting     atomic.Bool // sessions of peers
	cntr          [directions]*Counter
	remote        tally                             // of what peers do through the endpoint
	tally         *share.Tally                      // where a host counts that; under mu
	origin        *engine.Origin                    // set by Enable
	names         map[wire.Addr]*name               // under mu
	peers         atomic.Pointer[[]known]           // by Address, of those without a receive context; stored under mu
	contextPeers  atomic.Pointer[map[Address]known] // of the others; stored under mu
	room          *calls.Room                       // for dialled peers
	deferral      deferral                          // for operations that wait for a counter
	events        eventLink                         // under mu
	aliases       int                               // open; under mu
	shared        *SharedTransmit                   // nil if the endpoint shares with none
	sharedReceive *SharedReceive                    // that receive queue is of, or nil
	receiveQueue  *receiveQueue                     // set by Enable or Bind; nil if the endpoint receives no messages
	conn          *connection                       // nil unless the endpoint is of type EndpointMsg
	callMu        sync.Mutex                        // guards calls; taken before all others
	calls         *endpoint                         // for requests to dialled peers; made when it is needed
}

// Phases of the life of an endpoint. Operations can be posted while it is enabled.
const (
	made     = iota
	enabled  // by Enable
	draining // by Shutdown: the outstanding operations complete
	shutOff  // by Close
)

// known is an address of the address vector that the endpoint has used.
type known struct {
	id   engine.PeerID
	name *name
}

// NewEndpoint makes an endpoint (fi_endpoint). Bind the objects that it needs, then
// Enable it.
func (d *Domain) NewEndpoint(attr EndpointAttr) (*Endpoint, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	defer d.stay()()
	attr, err := attr.withDefaults()
	if err != nil {
		return nil, err
	}
	if r := attr.Request; r != nil && (r.pep == nil || r.pep.dom != d) {
		if r.pep == nil {
			return nil,
				errno.Refuse(ErrForeign, "xdpfab: endpoint for a request that is empty: want that of an EventConnReq")
		}
		return nil, errno.Refuse(ErrForeign,
			"xdpfab: endpoint for a request to domain %s: want one of the same domain",
			r.pep.dom.label())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	attr.TrafficClass, attr.AuthKey = attr.TrafficClass.or(d.attr.TrafficClass), attr.AuthKey.or(d.attr.AuthKey)
	identity := node.NewLife() // random, and not 0
	number, err := d.pickNumber(attr, identity)
	if err != nil {
		return nil, err
	}
	ep, err := d.newEndpoint(attr, number, identity)
	if err != nil {
		d.node.Numbers.Drop(number, nil)
		return nil, err
	}
	d.node.Numbers.Put(number, (*asTenant)(ep))
	d.endpoints[number] = ep
	if !attr.dials {
		d.children[ep] = fmt.Sprintf("endpoint %d", number)
	}
	return &ep.handle, nil
}

// newEndpoint makes an endpoint of a number. d.mu is held.
func (d *Domain) newEndpoint(attr EndpointAttr, number uint16, identity uint64) (ep *endpoint, err error) {
	attr.Number = int(number)
	ep = &endpoint{dom: d, attr: attr, number: number, identity: identity, names: map[wire.Addr]*name{}}
	if ep.key, err = d.node.Session(attr.AuthKey); err != nil {
		return nil, fmt.Errorf("xdpfab: endpoint: %w", err)
	}
	if attr.Type == EndpointMsg {
		if ep.conn, err = newConnection(ep); err != nil {
			return nil, fmt.Errorf("xdpfab: endpoint: %w", err)
		}
	}
	ep.handle.endpoint = ep
	ep.handle.opFlags.Store(uint64(attr.OpFlags))
	completions := engine.Sink((*sink)(ep))
	if attr.dials {
		completions = engine.Contexts{}
	}
	if ep.ring, err = engine.NewRing(attr.Size, completions); err != nil {
		return nil, fmt.Errorf("xdpfab: endpoint: %w", err)
	}
	if attr.part.of != nil {
		ep.stepper = d.node.Steppers[attr.part.queue%len(d.node.Steppers)]
	} else {
		ep.stepper = d.node.NextStepper()
	}
	ep.room = calls.NewRoom(ep.stepper, attr.Size)
	ep.peers.Store(&[]known{})
	return ep, nil
}

// pickNumber checks or chooses an endpoint number. d.mu is held.
func (d *Domain) pickNumber(attr EndpointAttr, identity uint64) (uint16, error) {
	if err := node.CheckNumber(attr.Number); err != nil {
		return 0, err
	}
	number, given, err := d.node.Dev.Number(attr.toHost(identity))
	switch {
	case err == nil:
	case strings.HasPrefix(err.Error(), "xdpfab: "): // the host's own words
		return 0, err
	default:
		return 0, fmt.Errorf("xdpfab: endpoint: %w", err)
	}
	if given {
		return number, nil
	}
	var of *node.Block
	// the numbers of a scalable endpoint are those of its receive contexts
	if inBlock := attr.part; inBlock.of != nil && !inBlock.posts {
		of = inBlock.of.block
	}
	return d.node.Numbers.Take(attr.Number, attr.InitiateOnly, of)
}

// toHost describes an endpoint for a host.
func (a *EndpointAttr) toHost(identity uint64) share.Endpoint {
	x := share.Endpoint{Number: a.Number, Highest: a.InitiateOnly,
		Unordered: a.MsgOrder == OrderNone, Connected: a.Type == EndpointMsg, Key: a.AuthKey, Origin: identity}
	if s := a.part.of; s != nil {
		first := uint16(s.attr.Number)
		x.Block, x.Posts = &first, a.part.posts
	}
	return x
}

// Attr returns the attributes in force.
func (ep *Endpoint) Attr() EndpointAttr { return ep.attr }

// SetOpFlags sets what FlagDefaults stands for, of posts by this handle from now on; see
// EndpointAttr.OpFlags (fi_control with FI_SETOPSFLAG).
func (ep *Endpoint) SetOpFlags(flags OpFlags) error {
	if err := ep.there(); err != nil {
		return err
	}
	if err := flags.check("default flags", defaultFlags); err != nil {
		return err
	}
	ep.opFlags.Store(uint64(flags))
	return nil
}

// OpFlags returns what FlagDefaults stands for (fi_control with FI_GETOPSFLAG).
func (ep *Endpoint) OpFlags() OpFlags { return OpFlags(ep.opFlags.Load()) }

// Number returns the endpoint's number.
func (ep *Endpoint) Number() uint16 { return ep.number }

// Name returns the address of the endpoint on its Ethernet segment (fi_getname). That of
// a transmit context is the scalable endpoint's.
func (ep *Endpoint) Name() string {
	if p := ep.attr.part; p.posts {
		return p.of.Name()
	}
	return ep.dom.Name(ep.number)
}

// Enable makes the endpoint ready (fi_enable). An endpoint that has an address vector can
// post, and must have a completion queue, or counters for both directions, so that no
// failure goes unnoticed. An endpoint that is not InitiateOnly accepts sessions from
// peers.
func (ep *Endpoint) Enable() error {
	if err := ep.there(); err != nil {
		return err
	}
	defer ep.dom.stay()()
	ep.mu.Lock()
	defer ep.mu.Unlock()
	switch phase := ep.phase.Load(); {
	case phase >= draining:
		return ep.errClosed()
	case phase == enabled:
		return nil
	case ep.attr.InitiateOnly && ep.av == nil && !ep.attr.dials:
		return fmt.Errorf("xdpfab: endpoint %d: it can neither post (no address vector is bound) nor be addressed "+
			"(InitiateOnly): %w",
			ep.number, ErrNoAV)
	case ep.attr.SourceErr && ep.sources() == nil:
		return errno.Refuse(ErrNoAV,
			"xdpfab: endpoint %d: unknown sources are to be errors (SourceErr), but nothing says which "+
				"are known: bind an address vector",
			ep.number)
	case (ep.av != nil || ep.conn != nil) && ep.cq == nil && (ep.cntr[reads] == nil || ep.cntr[writes] == nil):
		return errno.Refuse(ErrNoCQ,
			"xdpfab: endpoint %d can post, but nothing would tell of a failure: bind a completion "+
				"queue, or counters with BindRead and BindWrite",
			ep.number)
	}
	for _, c := range ep.counters() {
		c.owner.CompareAndSwap(nil, ep.stepper)
	}
	if ep.origin = ep.stepper.Eng.NewOrigin(ep.source()); ep.attr.MsgOrder == OrderNone {
		ep.origin = ep.stepper.Eng.NewUnorderedOrigin(ep.source())
	}
	if ep.dom.node.Dev.GuestRing() != nil {
		ep.origin.Assume(ep.identity, 0) // its sessions are the host's
	}
	ep.origin.SetKey(ep.key)
	ep.openReceives()
	ep.stepper.Call(func() {
		ep.stepper.Eng.AddRing(ep.ring, ep.origin)
		if ep.conn != nil {
			ep.stepper.Eng.AddRing(ep.conn.ring, ep.origin)
		}
	})
	if !ep.attr.InitiateOnly {
		if err := ep.serveAtHost(); err != nil {
			return fmt.Errorf("xdpfab: endpoint %d: %w", ep.number, err)
		}
		ep.dom.serve(ep.endpoint, true)
	}
	ep.phase.Store(enabled)
	return nil
}

// serveAtHost has the host of a domain that has one serve the endpoint.
func (ep *endpoint) serveAtHost() error {
	s := share.Serve{Endpoint: ep.number, On: true, Events: ep.recv != nil, Messages: ep.receiveQueue != nil,
		Calls: ep.attr.handler != nil}
	return ep.dom.node.Dev.Serve(s, ep.tallyAtHost)
}

// serve publishes the endpoints that accept sessions.
func (d *Domain) serve(ep *endpoint, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ep.accepting.Store(on)
	list := slices.DeleteFunc(slices.Clone(*d.served.Load()), func(x *endpoint) bool { return x == ep })
	if on {
		list = append(list, ep)
	}
	d.served.Store(&list)
}

// Alias returns another handle for the endpoint, with default flags of its own, so that
// parts of a program can have completions of different kinds (fi_ep_alias, FI_ALIAS).
// With FlagDefaults they are those that this handle has now. All else is shared:
// sessions, the order of operations, queues and counters, and the flags of receives.
// Completions and events name the handle that NewEndpoint returned. The endpoint cannot
// be closed as long as it has aliases.
func (ep *Endpoint) Alias(flags OpFlags) (*Endpoint, error) {
	if err := ep.there(); err != nil {
		return nil, err
	}
	if flags == FlagDefaults {
		flags = ep.OpFlags()
	}
	a := &Endpoint{endpoint: ep.endpoint}
	if err := a.SetOpFlags(flags); err != nil {
		return nil, err
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	switch {
	case ep.phase.Load() >= draining:
		return nil, ep.unready()
	case ep.ended.Load():
		return nil, ep.errEnded()
	}
	ep.aliases++
	return a, nil
}

func (ep *Endpoint) isAlias() bool { return ep != &ep.handle }

// endAlias is Close of an alias.
func (ep *Endpoint) endAlias() error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if !ep.ended.Swap(true) {
		ep.aliases--
	}
	return nil
}

func (ep *Endpoint) errEnded() error {
	return ep.dom.errClosed(fmt.Sprintf("alias of endpoint %d", ep.number), anew)
}
