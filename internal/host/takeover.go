// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/xsk"
)

// AdmitGuest decides what a program may do that is a guest already, and is handed over;
// conn stays the domain's. gone, if it is not nil, is called when the guest has gone,
// with what Host.Serve would return. A program that is refused learns why after Resume,
// and the domain's log says so, but not before: the former domain may have to go on.
type AdmitGuest func(conn *net.UnixConn) (limits GuestLimits, gone func(error), err error)

// TakeOver opens the interface in place of the node that has handed over, in the same
// process or another. prepare registers the regions, with the keys and incarnations that
// they had, and makes the endpoints. It finds resident memory by the names and sizes that
// it had, and registers it as it was. The node takes no packets until Resume; a host that
// is closed before that tells no peer, so that the handover can be opened again.
func TakeOver(ctx context.Context, h *Handover, ifname string, o Options, admit AdmitGuest, prepare func(*Host) error) (
	*Host, error) {
	var err error
	if o.Config, err = o.WithDefaults(); err != nil {
		return nil, err
	}
	dev, at, err := h.OpenDevice(ctx, ifname, o.Pin, o.port())
	if err != nil {
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	host, err := open(dev, o.Config, at, h.Life())
	if err != nil {
		return nil, err
	}
	if err := h.Fill(host.n, admit, func() error { return prepare(host) }); err != nil {
		return nil, errors.Join(fmt.Errorf("xdpfab: takeover: %w", err), host.Close())
	}
	return host, nil
}

const (
	// freeAgain is how long an interface may stay taken after its node was closed, or
	// down.
	freeAgain = 5 * time.Second
	// queueFree is how long a queue may: the kernel gives it back in a work item of its
	// own, and many others come first on a busy machine. The former daemon has nothing
	// else to go back to.
	queueFree = 20 * time.Second
)

// OpenDevice opens the interface that the handover has, as soon as it is free, and up:
// the former node has just closed it.
func (h *Handover) OpenDevice(ctx context.Context, ifname, pin string, o port.Options) (dev node.Device,
	at *residence.Store, err error) {
	if is := h.Folder(); pin != is {
		return nil, nil, errno.Refuse(errno.NotImplemented,
			"takeover with ResidentPin %q: want %q, as in the domain before", pin, is)
	}
	err = again(ctx, func() (err error) {
		dev, at, err = h.openDevice(ctx, ifname, o)
		return err
	})
	return dev, at, err
}

// again opens something as soon as it is free, and up.
func again(ctx context.Context, open func() error) error {
	for began := time.Now(); ; time.Sleep(openPoll) {
		err := open()
		patience := time.Duration(0)
		switch {
		case errors.Is(err, xsk.ErrQueueBusy):
			patience = queueFree
		case errors.Is(err, errno.Busy), errors.Is(err, xsk.ErrInterfaceDown):
			patience = freeAgain
		}
		if time.Since(began) >= patience || ctx.Err() != nil {
			return err
		}
	}
}

// openPoll is the time between two attempts.
const openPoll = 100 * time.Microsecond

// Fill gives a new node guests, regions, endpoints and sessions, in this order.
func (h *Handover) Fill(n *node.Node, admit AdmitGuest, prepare func() error) error {
	s, host := &h.State, On(n)
	if n.Dev.MAC() != s.MAC || len(n.Steppers) < len(s.Sessions) {
		return fmt.Errorf("interface with address %v and %d queues: want %v and at least %d, as before", n.Dev.MAC(),
			len(n.Steppers), s.MAC, len(s.Sessions))
	}
	for i := range s.Guests {
		g, told, err := h.takeIn(host, &s.Guests[i], admit)
		if err != nil { // one guest does not decide for all
			h.noteUnrestored(host, &s.Guests[i], told, err)
			continue
		}
		host.Mu.Lock()
		host.Tenancy.arriving = append(host.Tenancy.arriving, g)
		host.Mu.Unlock()
	}
	for i := range s.Kept {
		h.restoreKept(host, &s.Kept[i])
	}
	if err := prepare(); err != nil {
		return err
	}
	var err error
	guests := func(endpoint uint16) bool {
		switch n.Numbers.Serving(endpoint).(type) {
		case nil, *GuestEndpoint, *node.Listener:
			return true
		}
		return false
	}
	for q, sessions := range s.Sessions {
		st := n.Steppers[q]
		st.Call(func() { err = errors.Join(err, st.Eng.Import(sessions, guests)) })
	}
	first := n.Steppers[0]
	first.Call(func() { err = errors.Join(err, first.Eng.Import(s.Idle, guests)) })
	return err
}

// takeIn makes a guest of what a former host had of it. It is not served yet. If that
// fails, told is to be called when the guest is turned out; nil if it was not admitted.
func (h *Handover) takeIn(host *Host, s *guestState, admit AdmitGuest) (g *Guest, told func(error), err error) {
	conn, err := h.conn(s.Talk)
	if err != nil {
		return nil, nil, err
	}
	limits, gone, err := admit(conn)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	g = NewGuest(host, conn, limits)
	g.info, g.unanswered, g.told = s.Info, s.Unanswered, gone
	return g, gone, h.settle(g, s)
}

// settle gives a guest that was admitted what it had, or ends it.
func (h *Handover) settle(g *Guest, s *guestState) error {
	err := g.limits.check()
	if err == nil && g.info == (GuestInfo{}) {
		err = g.meet()
	}
	if err == nil {
		err = g.h.admit(g)
	}
	if err != nil {
		return errors.Join(err, g.talk.Close())
	}
	if s.Attached != nil {
		err = h.restore(g, s.Attached)
	}
	if held := s.held(); err == nil && held != nil {
		err = held.restore(h, g)
	}
	if err != nil {
		g.withdrawKept() // noteUnrestored has all that it kept
		g.end()
	}
	return err
}

// tell reports the end of a guest to its admitter.
func (g *Guest) tell(err error) {
	if g.told != nil {
		g.told(err)
	}
}

// conn returns a connection whose file descriptor the handover has.
func (h *Handover) conn(at int) (*net.UnixConn, error) {
	fd, err := h.copyOf(at)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "conversation")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, is := c.(*net.UnixConn)
	if !is {
		return nil,
			errors.Join(fmt.Errorf("a conversation by %s: want a Unix socket", c.LocalAddr().Network()), c.Close())
	}
	return conn, nil
}

// copyOf returns a copy of one of the file descriptors.
func (h *Handover) copyOf(at int) (int, error) {
	fd, err := h.file(at)
	if err != nil {
		return -1, err
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}

// restore gives a guest what it had: its rings, what it has asked for, and then the peers
// that it knows.
func (h *Handover) restore(g *Guest, s *AttachedState) error {
	if err := h.restoreRings(g, s); err != nil {
		return err
	}
	if err := h.restoreEndpoints(g, s); err != nil {
		return err
	}
	for i := range s.Passives {
		if err := g.restorePassive(&s.Passives[i]); err != nil {
			return err
		}
	}
	if g.restoreCredits(&s.In); len(s.Regions)+len(s.Passives) > 0 {
		g.limits.Serves()
	}
	if err := errors.Join(g.restoreLeft(s.Left), h.restoreRegions(g, s.Regions)); err != nil {
		return err
	}
	g.making.Lock()
	defer g.making.Unlock()
	for _, p := range s.Ring.Peers {
		// The endpoint may be one that a former host has let go of.
		if err := g.meetPeer(p.Number, p.As, p.Link); err != nil && !errors.Is(err, errno.Closed) {
			return err
		}
	}
	return nil
}

// restoreRings maps the memory that a guest shares with its host, and serves its rings as
// they were.
func (h *Handover) restoreRings(g *Guest, s *AttachedState) error {
	if s.Segment < 0 || s.Segment >= len(h.fds) {
		return fmt.Errorf("the rings are missing")
	}
	if err := g.allows(s.Sizes); err != nil {
		return err
	}
	if g.features = share.Agreed(s.Features); len(g.features) != len(s.Features) {
		return errno.Refuse(errno.NotImplemented,
			"the program uses the features %v: this daemon has %v; use a daemon of the former release "+
				"or a later one", s.Features, share.Features)
	}
	if err := g.chargeSegment(s.Sizes); err != nil {
		return err
	}
	segment, err := s.Sizes.Map(h.fds[s.Segment])
	if err != nil {
		g.releaseSegment(s.Sizes)
		return err
	}
	doorbell, err := h.copyOf(s.Doorbell)
	if err != nil {
		g.releaseSegment(s.Sizes)
		return errors.Join(err, segment.Close())
	}
	g.start(segment, share.DoorbellOf(doorbell), nil, s.Sizes,
		func(ring *share.HostRing) { ring.Restore(&s.Ring) })
	g.in.Restore(&s.In)
	g.watches, g.peers = s.Ring.Watches, s.PeersGiven
	g.giveUp.Store(int64(s.GiveUp))
	return nil
}

// restoreEndpoints makes a guest's tallies, blocks of endpoints and endpoints anew.
func (h *Handover) restoreEndpoints(g *Guest, s *AttachedState) error {
	ctx := context.Background()
	if s.Tallies >= 0 && s.Tallies < len(h.fds) {
		if _, err := g.mapTallies(ctx, nil, h.fds[s.Tallies:s.Tallies+1]); err != nil {
			return err
		}
	}
	for _, b := range s.Blocks {
		if _, err := g.block(ctx, b); err != nil {
			return err
		}
	}
	for _, ep := range s.Endpoints {
		if of := ep.As.Block; of != nil && g.blocks[*of] == nil {
			continue // a former host has let go of its scalable endpoint
		}
		if _, err := g.endpoint(ctx, ep.As); err != nil {
			return err
		}
		if _, err := g.serveEndpoint(ctx, ep.Serve); err != nil {
			return err
		}
		g.goOn(&ep)
	}
	return nil
}

// goOn notes what an endpoint was before: what its sessions may have, and its connection.
func (g *Guest) goOn(s *endpointState) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	ep := g.endpoints[s.Serve.Endpoint]
	ep.successor, ep.spoken = s.Successor, s.Spoken
	ep.reconnect(s.Connection)
}

// Arrivals implements node.GuestHost.
func (h *Host) Arrivals() (serve func()) {
	arriving, unrestored := h.takeArrivals()
	return func() { serveArrivals(h, arriving, unrestored) }
}

// takeArrivals takes the guests that were handed over, and those that cannot go on.
func (h *Host) takeArrivals() ([]*Guest, []*unrestored) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	arriving, unrestored := h.Tenancy.arriving, h.Tenancy.unrestored
	h.Tenancy.arriving, h.Tenancy.unrestored = nil, nil
	return arriving, unrestored
}

// serveArrivals serves the guests that were handed over, and turns out those that cannot
// go on.
func serveArrivals(host *Host, arriving []*Guest, unrestored []*unrestored) {
	for _, x := range unrestored {
		go x.evict(host)
	}
	for _, g := range arriving {
		if g.Ring != nil {
			g.St.Call(func() { g.Ring.Watch(g.watches) })
			g.attend()
			g.room()
		}
		if g.holds != nil {
			g.holds.resume(g)
		}
		calls := g.unanswered
		g.unanswered = nil
		go func() {
			g.tell(g.serve(calls))
		}()
	}
}

// undoOpen undoes Open before Resume.
func (h *Host) undoOpen() {
	arriving, unrestored := h.takeArrivals()
	for _, x := range unrestored {
		x.leaveToFormer()
	}
	for _, g := range arriving {
		g.end()
		g.tell(nil)
	}
}

// Life is that of the domain before.
func (h *Handover) Life() uint64 { return h.State.Life }
