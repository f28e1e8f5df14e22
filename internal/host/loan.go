// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A host may have queues to lend (xdpfabd --lend). A guest that borrows one drives it
// with an engine of its own. The host still has the XDP program, the addresses and the
// ways to peers, and gives out the numbers of endpoints, which decide who gets a hello.
// What arrives on a wrong queue crosses over in a cross ring.

// loan is a queue that a guest has.
type loan struct {
	*port.Loan
	queue     int
	crossRing *share.CrossRing
	leaves    bool // another process continues the loan, or may have to: the queue is not taken back
	tasks     sync.WaitGroup

	mu    sync.Mutex
	ways  map[wire.Addr]*knownWay // followed
	moved map[wire.Addr]wire.Link
	wake  chan struct{} // moved is not empty
	done  chan struct{}
	hush  sync.Once // closes done

	silenced chan struct{} // closed when tell has ended
}

func newLoan(l *port.Loan, queue int, f *share.CrossRing) *loan {
	return &loan{Loan: l, queue: queue, crossRing: f, ways: map[wire.Addr]*knownWay{}, moved: map[wire.Addr]wire.Link{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		silenced: make(chan struct{})}
}

// loanCalls are what the borrower of a queue can ask for.
var loanCalls = map[string]guestCall{
	share.CallNumber:   call1((*Guest).allot),
	share.CallDrop:     call1((*Guest).surrender),
	share.CallLink:     call1((*Guest).link),
	share.CallFollow:   call1((*Guest).follow),
	share.CallForget:   call1((*Guest).endFollow),
	share.CallSilent:   call1((*Guest).silent),
	share.CallCounters: call1((*Guest).loanCounters),
	share.CallOwnFault: call1((*Guest).ownFault),
}

// borrow answers the call of a guest that wants a queue of its own.
func (g *Guest) borrow(_ context.Context, b share.Borrow) (any, error) {
	if b.Version != share.Version {
		return nil,
			errno.Refuse(errno.NotImplemented,
				"queues of version %d: this host has version %d; use a program and a daemon of one release",
				b.Version, share.Version)
	}
	l, err := g.h.lend(g)
	if err != nil {
		return nil, err
	}
	if l.Parts.Segments > 1 && !b.Segments {
		g.queue.Store(nil)
		l.Return()
		return nil, fmt.Errorf("packets at the MTU of %d lie in several buffers, which this program is too old for: "+
			"build it with this release, or do without a queue of its own: %w", g.h.n.Dev.MTU(), errno.NotImplemented)
	}
	own, other, err := share.NewCrossRing()
	if err != nil {
		g.queue.Store(nil)
		l.Return()
		return nil, err
	}
	x := newLoan(l, l.Parts.Number, own)
	g.gifts = []int{l.Socket, l.Memory, other[0], other[1]}
	g.given = func() {
		x.Passed()
		share.CloseAll(other[:])
	}
	g.limits.Serves()
	g.takeLoan(x)
	g.startLoan(x)
	parts, err := json.Marshal(l.Parts)
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(g.h.n.Dev.Info())
	return share.Borrowed{Parts: parts, Attached: share.Attached{Version: share.Version, NetNS: g.h.n.Place.Namespace,
		PID:       os.Getpid(),
		Interface: info, MAC: g.h.n.Dev.MAC(), MTU: g.h.n.Dev.MTU()}}, err
}

// lend takes a queue for a guest, if the rules and the queues allow it.
func (h *Host) lend(g *Guest) (*port.Loan, error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.n.Dev.Medium() == wire.OnSocket {
		return nil, fmt.Errorf("the host has no queues to lend, since it has UDP sockets: have it started with AF_XDP "+
			"and some (xdpfabd --transport xdp --lend), or do without: %w", errno.Busy)
	}
	if err := g.mayBorrow(); err != nil {
		return nil, err
	}
	from, is := h.n.Dev.(node.Lender)
	if !is || len(from.Spares()) == 0 {
		return nil, fmt.Errorf("the host has no queues to lend: have it started with some (xdpfabd --lend), "+
			"or do without: %w", errno.Busy)
	}
	l, err := from.Lend()
	if err != nil {
		return nil, errno.Refuse(errno.Busy, "%w; wait until a program gives one back, or do without", err)
	}
	g.queue.Store(&l.Parts.Number)
	return l, nil
}

// mayBorrow reports why the guest may not have one more queue. h.mu is held.
func (g *Guest) mayBorrow() error {
	has := 0
	for other := range g.h.Tenancy.guests {
		if other.queue.Load() != nil && other.info.UID == g.info.UID && other.limits.Rule == g.limits.Rule {
			has++
		}
	}
	switch {
	case g.limits.Queues == 0:
		if from, is := g.h.n.Dev.(node.Lender); !is || len(from.Spares()) == 0 {
			return errno.Refuse(errno.Denied, "%s lets this program borrow no queue, and there is none to lend: have "+
				"both, as in xdpfabd --lend 1 --guest allow:user=NAME,queues=1, or do without", g.limits.Rule)
		}
		return errno.Refuse(errno.Denied, "%s lets this program borrow no queue: have queues = 1 added to a rule that "+
			"is about it, as in --guest allow:user=NAME,queues=1", g.limits.Rule)
	case has >= g.limits.Queues:
		return errno.Refuse(errno.Denied,
			"%s lets programs of user %d borrow %d queues, and they have as many: give one back, or have the"+
				" limit raised", g.limits.Rule, g.info.UID, g.limits.Queues)
	}
	return nil
}

// takeLoan notes what the guest has borrowed.
func (g *Guest) takeLoan(x *loan) {
	g.Mu.Lock()
	g.endpoints, g.holds = map[uint16]*GuestEndpoint{}, x
	g.Mu.Unlock()
	g.h.Mu.Lock()
	g.h.crossRing(x.queue, x.crossRing)
	g.h.Mu.Unlock()
}

// startLoan has packets cross over, and tells the borrower of new ways.
func (g *Guest) startLoan(x *loan) {
	own := g.h.n.Steppers[x.queue%len(g.h.n.Steppers)].Eng
	x.tasks.Go(func() { x.crossRing.Run(func(packet []byte) { own.Deliver(packet, false) }) })
	x.tasks.Go(func() {
		defer close(x.silenced)
		x.tell(g.talk)
	})
}

// calls implements holding.
func (x *loan) calls() map[string]guestCall { return loanCalls }

// end implements holding: it takes the queue back, unless another process goes on with
// the loan.
func (x *loan) end(g *Guest) {
	g.h.Mu.Lock()
	g.h.crossRing(x.queue, nil)
	for n := range g.endpoints {
		g.h.n.Numbers.Drop(n, g.endpoints[n])
	}
	g.h.Mu.Unlock()
	for _, w := range x.ways {
		w.stop()
	}
	x.hush.Do(func() { close(x.done) })
	_ = x.crossRing.Close()
	x.tasks.Wait()
	g.give()
	if x.leaves {
		x.Close()
		return
	}
	g.queue.Store(nil) // before it can be lent again
	x.Return()
}

// lending is what a host has of the queues that it lends.
type lending struct {
	crossRings atomic.Pointer[map[int]*share.CrossRing] // to borrowers, by queue; stored under mu
}

// crossRing notes by which cross ring the packets for a queue leave; nil for none. h.mu
// is held.
func (h *Host) crossRing(queue int, f *share.CrossRing) {
	all := map[int]*share.CrossRing{}
	if old := h.crossRings.Load(); old != nil {
		maps.Copy(all, *old)
	}
	if f == nil {
		delete(all, queue)
	} else {
		all[queue] = f
	}
	h.crossRings.Store(&all)
}

// Outside implements node.Neighbours.
func (h *Host) Outside(packet []byte, queue int) (sent bool) {
	all := h.crossRings.Load()
	if all == nil {
		return false
	}
	for q, f := range *all {
		if q == queue || queue == engine.AnyQueue {
			f.Send(packet)
			sent = true
		}
	}
	return sent
}

// Elsewhere implements node.Neighbours.
func (h *Host) Elsewhere(endpoint uint16) (queue int, is bool) {
	if ep, is := h.n.Numbers.At(endpoint).(*GuestEndpoint); is {
		if q := ep.Guest.queue.Load(); q != nil {
			return *q, true
		}
	}
	return 0, false
}

// allot gives the borrower numbers of endpoints.
func (g *Guest) allot(_ context.Context, n share.Number) (uint16, error) {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if n.Count < 1 {
		return 0, errno.Refuse(errno.Count, "%d numbers of endpoints: want at least one", n.Count)
	}
	if err := g.mayNumber(n.Count); err != nil {
		return 0, err
	}
	first, err := g.h.pickNumbers(n)
	if err != nil {
		return 0, err
	}
	for i := range n.Count {
		number := uint16(first + i)
		ep := &GuestEndpoint{Guest: g, number: number, identity: node.NewLife()}
		g.endpoints[number] = ep
		g.h.n.Numbers.Put(number, ep)
	}
	return uint16(first), nil
}

// pickNumbers checks or chooses numbers for a borrower. h.mu is held.
func (h *Host) pickNumbers(n share.Number) (int, error) {
	if n.Count > 1 {
		return h.n.Numbers.TakeMany(n.Number, n.Count)
	}
	number, err := h.n.Numbers.Take(n.Number, n.Highest, nil)
	return int(number), err
}

// surrender takes the number of an endpoint back.
func (g *Guest) surrender(_ context.Context, number uint16) (any, error) {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if ep := g.endpoints[number]; ep != nil {
		delete(g.endpoints, number)
		g.h.n.Numbers.Drop(number, ep)
	}
	return nil, nil
}

// loanCounters are those of the XDP program, which the borrower cannot see.
func (g *Guest) loanCounters(ctx context.Context, _ struct{}) (map[string]uint64, error) {
	all, err := g.interfaceCounters(ctx)
	maps.DeleteFunc(all, func(name string, _ uint64) bool { return !strings.HasPrefix(name, "xdp_") })
	return all, err
}

// LentQueue describes a queue that a domain can lend (xdpfabd --lend).
type LentQueue struct {
	Queue int                `json:"queue"`
	State port.LendableState `json:"state"`
	Lends uint64             `json:"lends"` // how often it was lent so far
	PID   int                `json:"pid"`   // of the borrower; 0 for none, or one that this process cannot see
}

// IsFree reports whether the queue can be lent.
func (q LentQueue) IsFree() bool { return q.State == port.LendableFree }

// IsLent reports whether a program borrows the queue.
func (q LentQueue) IsLent() bool { return q.State == port.LendableLent }

// LentQueues describes the queues that the domain can lend, by number.
func (h *Host) LentQueues() []LentQueue {
	list := []LentQueue{}
	from, is := h.n.Dev.(node.Lender)
	if !is {
		return list
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for _, s := range from.Spares() {
		q := LentQueue{Queue: s.Number, State: s.State, Lends: s.Lends}
		for g := range h.Tenancy.guests {
			if has := g.queue.Load(); has != nil && *has == s.Number {
				q.PID = g.info.PID
			}
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b LentQueue) int { return a.Queue - b.Queue })
	return list
}
