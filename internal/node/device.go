// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Device is an interface as a domain sees it: the AF_XDP interface of internal/port, the
// in-memory cable of Pipe, or an interface that another process has.
type Device interface {
	Ports() []engine.Port
	MAC() wire.MAC
	// Sifted reports whether the ports receive packets for this node alone, be they to
	// MAC or to another of its addresses.
	Sifted() bool
	MTU() int
	Medium() wire.Medium // of the ports' packets
	// Link finds the way to an address: for IP the route and the next hop's MAC.
	Link(ctx context.Context, a wire.Addr) (wire.Link, error)
	// Watch begins to report changes, on one goroutine. Close waits for the last call.
	Watch(func(port.Event))
	// Follow reports a new link when the way to an address changes, until stop is called.
	// Silent is a hint that the way may have changed, which makes it look. See
	// port.Interface.
	Follow(a wire.Addr, l wire.Link, changed func(wire.Link)) (stop func())
	Silent(remote netip.Addr)
	// OwnFault says why no packet of this node reaches the address at present, whatever
	// the peer does, and the remedy; "" if nothing is wrong here, or it is not known.
	OwnFault(to wire.Addr) string
	Info() InterfaceInfo
	Counters() (map[string]uint64, error)
	Close() error

	// Cross begins to take the packets that arrive on queues of others.
	Cross(n *Node, e *engine.Engine)

	upstream
}

// upstream is what another process does for a domain that uses its interface. A domain
// that has its interface does it itself: alone says so.
type upstream interface {
	// GuestRing returns what takes the operations of the engine in place of sessions; nil
	// for none.
	GuestRing() engine.GuestRing
	// MayHost reports why the domain cannot host guests and be taken over.
	MayHost() error
	// Allowed is what the other process allows; nil for no limits.
	Allowed() *share.Offer

	// The numbers of endpoints. given is false if the domain is to choose.
	Number(x share.Endpoint) (number uint16, given bool, err error)
	Passive(x share.Passive) (number uint16, given bool, err error)
	Block(number, length int) (first int, given bool, err error)
	GiveBack(first uint16, count int)
	ReleaseNumbers(first uint16)

	// Serve has peers reach an endpoint, and drop ends it with its tally.
	Serve(s share.Serve, tally func() (int, error)) error
	Drop(identity uint64, t *share.Tally)

	// Memory makes memory for a region, and register lets peers operate on a region that
	// is in the domain's table, until withdraw. kind is refused if it cannot be offered.
	Memory(name string, size int) (*mr.Memory, error)
	Offers(kind mr.Kind) error
	Register(r *mr.Region, m *mr.Memory, o mr.Options) error
	Withdraw(key uint64)
	Observe(key uint64, to share.Counted) error
	// NewTally has the operations of an endpoint counted.
	NewTally(to share.Counted) (*share.Tally, error)

	// Peer has the other process know a peer, and returns its number there.
	Peer(ctx context.Context, p share.Peer) (uint32, error)
	// Ask has the other process ask for a connection, and parted has it end the sessions
	// of a connection; it reports whether there was one. Neither is called unless there
	// is a guest ring. Async runs f on another goroutine if it may wait.
	Ask(ctx context.Context, x share.Ask, answer *share.Answer) error
	Parted(origin uint64) (met bool)
	Async(f func())
	// ListenAtHost returns what has the other process take requests for connections.
	// place waits for room for one, which the function that it returns fills, or frees if
	// it gets nil.
	ListenAtHost(number uint16, place func(context.Context) func(*share.Request)) Requests

	// Tune checks the attributes of sessions against those of the other process, and
	// fills them in. deliver has what peers send go to the domain. survive has the domain
	// move to another host.
	Tune(t *Tuning) error
	Deliver(to share.Receiver)
	Survive(on *Stepper, move MoveIn)

	// Stay keeps the domain from moving to another host until done is called.
	Stay() (done func())
	// Look counts what peers did, catchUp has all of it reach the receives, and room says
	// that there may be room for messages.
	Look()
	CatchUp(on *Stepper)
	Room()
	// Part begins the end of the domain.
	Part()
}

// Requests has another process take requests for connections to a passive endpoint.
type Requests interface {
	Listen() error
	// Again is listen at another host; it does nothing for an endpoint that ended.
	Again(s share.Passive, listens bool) error
	// Reply answers a request. done is false if the domain is to do it.
	Reply(x share.Decision) (done bool, err error)
	End()
}

// MoveIn gives another host what the domain has, and returns the numbers of its peers.
type MoveIn = func(context.Context) (map[*engine.Peer]uint32, error)

// Tuning is the attributes of sessions that a host may set.
type Tuning struct {
	GiveUp, RTOMin, BaseRTT, IdleRetire time.Duration
	Window                              int

	DefaultGiveUp, DefaultIdleRetire bool // filled in
}

// RegionKeeper is a device whose regions can outlive the process.
type RegionKeeper interface {
	Keep(r *mr.Region) error
	// TakeBack returns a kept region and its memfd, which is the caller's, and took notes
	// that the domain has it.
	TakeBack(name string) (share.Region, int, error)
	Took(r share.Region, m *mr.Memory)
}

// Disturbable is a device that can do to packets what happens on a bad network.
type Disturbable interface {
	Disturb(port.Faults) error
}

// Alone is the upstream of a domain that has its interface.
type Alone struct{}

// Medium implements Device.
func (Alone) Medium() wire.Medium { return wire.OnEthernet }

// Sifted implements Device.
func (Alone) Sifted() bool { return false }

// GuestRing implements Upstream.
func (Alone) GuestRing() engine.GuestRing { return nil }

// OwnFault implements Device.
func (Alone) OwnFault(wire.Addr) string { return "" }

// MayHost implements Upstream.
func (Alone) MayHost() error { return nil }

// Allowed implements Upstream.
func (Alone) Allowed() *share.Offer { return nil }

// Number implements Upstream.
func (Alone) Number(share.Endpoint) (uint16, bool, error) { return 0, false, nil }

// Passive implements Upstream.
func (Alone) Passive(share.Passive) (uint16, bool, error) { return 0, false, nil }

// Block implements Upstream.
func (Alone) Block(int, int) (int, bool, error) { return 0, false, nil }

// GiveBack implements Upstream.
func (Alone) GiveBack(uint16, int) {}

// ReleaseNumbers implements Upstream.
func (Alone) ReleaseNumbers(uint16) {}

// Serve implements Upstream.
func (Alone) Serve(share.Serve, func() (int, error)) error { return nil }

// Drop implements Upstream.
func (Alone) Drop(uint64, *share.Tally) {}

// Memory implements Upstream.
func (Alone) Memory(_ string, size int) (*mr.Memory, error) {
	return mr.Alloc(size, mr.AllocOptions{})
}

// Offers implements Upstream.
func (Alone) Offers(mr.Kind) error { return nil }

// Register implements Upstream.
func (Alone) Register(*mr.Region, *mr.Memory, mr.Options) error { return nil }

// Withdraw implements Upstream.
func (Alone) Withdraw(uint64) {}

// Observe implements Upstream.
func (Alone) Observe(uint64, share.Counted) error { return nil }

// Peer implements Upstream.
func (Alone) Peer(context.Context, share.Peer) (uint32, error) { return 0, errno.NotImplemented }

// NewTally implements Upstream.
func (Alone) NewTally(share.Counted) (*share.Tally, error) { return nil, errno.NotImplemented }

// Ask implements Upstream.
func (Alone) Ask(context.Context, share.Ask, *share.Answer) error { return errno.NotImplemented }

// Parted implements Upstream.
func (Alone) Parted(uint64) bool { return false }

// Async implements Upstream.
func (Alone) Async(f func()) { f() }

// ListenAtHost implements Upstream.
func (Alone) ListenAtHost(uint16, func(context.Context) func(*share.Request)) Requests {
	return noRequests{}
}

// noRequests leaves requests for connections to the domain.
type noRequests struct{}

func (noRequests) Listen() error { return nil }

func (noRequests) Again(share.Passive, bool) error { return nil }

func (noRequests) Reply(share.Decision) (bool, error) { return false, nil }

func (noRequests) End() {}

// Tune implements Upstream.
func (Alone) Tune(*Tuning) error { return nil }

// Deliver implements Upstream.
func (Alone) Deliver(share.Receiver) {}

// Survive implements Upstream.
func (Alone) Survive(*Stepper, MoveIn) {}

// Stay implements Upstream.
func (Alone) Stay() func() { return func() {} }

// Look implements Upstream.
func (Alone) Look() {}

// CatchUp implements Upstream.
func (Alone) CatchUp(*Stepper) {}

// Room implements Upstream.
func (Alone) Room() {}

// Part implements Upstream.
func (Alone) Part() {}

// IsGuest is the error of mayHost of a domain that is a guest itself.
func IsGuest(ifname string) error {
	return fmt.Errorf("domain on %s is a guest itself: %w", ifname, errno.NotImplemented)
}

// Cross implements Device.
func (Alone) Cross(*Node, *engine.Engine) {}
