// SPDX-License-Identifier: Apache-2.0

package xdpfab

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

// device is an interface as a domain sees it: the AF_XDP interface of internal/port, the
// in-memory cable of Pipe, or an interface that another process has.
type device interface {
	Ports() []engine.Port
	MAC() wire.MAC
	MTU() int
	// Link finds the way to an address: for IP the route and the next hop's MAC.
	Link(ctx context.Context, a wire.Addr) (wire.Link, error)
	// Watch begins to report changes, on one goroutine. Close waits for the last call.
	Watch(func(port.Event))
	// Follow reports a new link when the way to an address changes, until stop is called.
	// Silent is a hint that the way may have changed, which makes it look. See
	// port.Interface.
	Follow(a wire.Addr, l wire.Link, changed func(wire.Link)) (stop func())
	Silent(remote netip.Addr)
	Info() interfaceInfo
	Counters() (map[string]uint64, error)
	Close() error

	// beyond returns what lies beyond the device's own queues, and the number of the
	// first of these. cross begins to take the packets that arrive on queues of others.
	beyond(n *Node) (b beyond, first int)
	cross(n *Node, e *engine.Engine)

	upstream
}

// upstream is what another process does for a domain that uses its interface. A domain
// that has its interface does it itself: alone says so.
type upstream interface {
	// carries returns what takes the operations of the engine in place of sessions; nil
	// for none.
	carries() engine.Carrier
	// mayHost reports why the domain cannot host guests and be taken over.
	mayHost() error
	// allowed is what the other process allows; nil for no limits. lent says that the
	// domain drives a queue of its own there.
	allowed() (by *share.Offer, lent bool)

	// The numbers of endpoints. given is false if the domain is to choose.
	number(x share.Endpoint) (number uint16, given bool, err error)
	passive(x share.Passive) (number uint16, given bool, err error)
	block(number, length int) (first int, given bool, err error)
	giveBack(first uint16, count int)
	unblock(first uint16)

	// serve has peers reach an endpoint, and drop ends it with its tally.
	serve(s share.Serve, tally func() (int, error)) error
	drop(identity uint64, t *share.Tally)

	// memory makes memory for a region, and register lets peers operate on a region that
	// is in the domain's table, until withdraw. kind is refused if it cannot be offered.
	memory(name string, size int) (*mr.Memory, error)
	offers(kind mr.Kind) error
	register(r *mr.Region, m *mr.Memory, o mr.Options) error
	withdraw(key uint64)
	observe(key uint64, to share.Counted) error
	// newTally has the operations of an endpoint counted.
	newTally(to share.Counted) (*share.Tally, error)

	// peer has the other process know a peer, and returns its number there.
	peer(ctx context.Context, p share.Peer) (uint32, error)
	// ask has the other process ask for a connection, and parted has it end the sessions
	// of a connection; it reports whether there was one. Neither is called unless there
	// is a carrier. beside does something beside the caller, if that must not wait.
	ask(ctx context.Context, x share.Ask, answer *share.Answer) error
	parted(origin uint64) (met bool)
	beside(f func())
	// hear returns what has the other process take requests for connections. place waits
	// for room for one, which the function that it returns fills, or frees if it gets
	// nil.
	hear(number uint16, place func(context.Context) func(*share.Request)) requests

	// tune checks the attributes of sessions against those of the other process, and
	// fills them in. deliver has what peers send go to the domain. survive has the domain
	// move to another host.
	tune(t *tuning) error
	deliver(to share.Receiver)
	survive(on *stepper, move moveIn)

	// stay keeps the domain from moving to another host until done is called.
	stay() (done func())
	// look counts what peers did, catchUp has all of it reach the receives, and room says
	// that there may be room for messages.
	look()
	catchUp(on *stepper)
	room()
	// part begins the end of the domain.
	part()
}

// requests has another process take requests for connections to a passive endpoint.
type requests interface {
	listen() error
	// again is listen at another host; it does nothing for an endpoint that has ended.
	again(s share.Passive, listens bool) error
	// reply answers a request. done is false if the domain is to do it.
	reply(x share.Decision) (done bool, err error)
	end()
}

// moveIn gives another host what the domain has, and returns the numbers of its peers.
type moveIn = func(context.Context) (map[*engine.Peer]uint32, error)

// tuning is the attributes of sessions that a host may set.
type tuning struct {
	GiveUp, RTOMin, BaseRTT, IdleRetire time.Duration
	Window                              int

	usualGiveUp, usualIdleRetire bool // filled in
}

// regionKeeper is a device of which regions can outlive the process.
type regionKeeper interface {
	keep(r *mr.Region) error
	// takeBack returns a kept region and its memfd, which is the caller's, and took notes
	// that the domain has it.
	takeBack(name string) (share.Region, int, error)
	took(r share.Region, m *mr.Memory)
}

// lender is a device that may have queues to lend.
type lender interface {
	Lend() (*port.Loan, error)
	Spares() []port.Spare
	Mind(deliver func([]byte), happened func(port.Event))

	// For a takeover; see port.Interface.
	Leave() (*port.Inheritance, error)
	Inherited(queue int) (*port.Loan, error)
	Settle()
}

// alone is the upstream of a domain that has its interface.
type alone struct{}

func (alone) carries() engine.Carrier { return nil }

func (alone) mayHost() error { return nil }

func (alone) allowed() (*share.Offer, bool) { return nil, false }

func (alone) number(share.Endpoint) (uint16, bool, error) { return 0, false, nil }

func (alone) passive(share.Passive) (uint16, bool, error) { return 0, false, nil }

func (alone) block(int, int) (int, bool, error) { return 0, false, nil }

func (alone) giveBack(uint16, int) {}

func (alone) unblock(uint16) {}

func (alone) serve(share.Serve, func() (int, error)) error { return nil }

func (alone) drop(uint64, *share.Tally) {}

func (alone) memory(_ string, size int) (*mr.Memory, error) {
	return mr.Alloc(size, mr.AllocOptions{})
}

func (alone) offers(mr.Kind) error { return nil }

func (alone) register(*mr.Region, *mr.Memory, mr.Options) error { return nil }

func (alone) withdraw(uint64) {}

func (alone) observe(uint64, share.Counted) error { return nil }

func (alone) peer(context.Context, share.Peer) (uint32, error) { return 0, errno.NotImplemented }

func (alone) newTally(share.Counted) (*share.Tally, error) { return nil, errno.NotImplemented }

func (alone) ask(context.Context, share.Ask, *share.Answer) error { return errno.NotImplemented }

func (alone) parted(uint64) bool { return false }

func (alone) beside(f func()) { f() }

func (alone) hear(uint16, func(context.Context) func(*share.Request)) requests { return noRequests{} }

// noRequests leaves requests for connections to the domain.
type noRequests struct{}

func (noRequests) listen() error { return nil }

func (noRequests) again(share.Passive, bool) error { return nil }

func (noRequests) reply(share.Decision) (bool, error) { return false, nil }

func (noRequests) end() {}

func (alone) tune(*tuning) error { return nil }

func (alone) deliver(share.Receiver) {}

func (alone) survive(*stepper, moveIn) {}

func (alone) stay() func() { return func() {} }

func (alone) look() {}

func (alone) catchUp(*stepper) {}

func (alone) room() {}

func (alone) part() {}

// isGuest is the error of mayHost of a domain that is a guest itself.
func isGuest(ifname string) error {
	return fmt.Errorf("domain on %s is a guest itself: %w", ifname, errno.NotImplemented)
}

func (alone) beyond(*Node) (beyond, int) { return beyond{}, 0 }

func (alone) cross(*Node, *engine.Engine) {}
