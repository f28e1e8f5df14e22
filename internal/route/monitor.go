// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// monitorBuffer is the receive buffer of a Monitor, bytes: some thousand messages.
const monitorBuffer = 1 << 20

// errorPause is how long to wait after an unknown error.
const errorPause = 100 * time.Millisecond

// groups are the multicast groups of rtnetlink(7) that bear on where frames go.
var groups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
	unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
	unix.RTNLGRP_NEXTHOP,
}

// Change describes what has to be read again. The kernel's messages are only the
// occasion to do so: the tables are right even if messages were lost or came
// late.
type Change struct {
	Link       bool // the interface itself
	Down       bool // it was set down, and may be up again since
	Addrs      bool // its addresses
	Routes     bool // routes, rules or next hops, of any interface
	Neighbours bool // messages were lost: any neighbour may have changed
	// Valid are the neighbours on the interface that the kernel now believes to be
	// at these addresses.
	Valid map[netip.Addr]wire.MAC
}

// everything is the change that has to be assumed after a loss of messages.
var everything = Change{Link: true, Down: true, Addrs: true, Routes: true, Neighbours: true}

// Monitor tells of changes that concern one interface, or those above it. One goroutine
// calls Next; any may call Close.
type Monitor struct {
	r      *Resolver
	socket *nl.NetlinkSocket
	closed atomic.Bool
	// closing keeps the descriptor open while drain reads it.
	closing sync.Mutex
}

// Monitor returns a Monitor for the interface; the calling thread is in its network
// namespace. The Monitor stays with that namespace, and keeps everything that happens
// from now on until Next asks.
func (r *Resolver) Monitor() (*Monitor, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, fmt.Errorf("subscribing to changes of links, addresses, routes and neighbours: %w", err)
	}
	// Without the privilege the system's limit applies, and losses are more likely.
	if s.SetReceiveBufferSize(monitorBuffer, true) != nil {
		_ = s.SetReceiveBufferSize(monitorBuffer, false)
	}
	return &Monitor{r: r, socket: s}, nil
}

// Close ends Next with ErrClosed. It is idempotent.
func (m *Monitor) Close() {
	if !m.closed.Swap(true) {
		m.closing.Lock()
		defer m.closing.Unlock()
		m.socket.Close()
	}
}

// Next waits for a change. When messages were lost, everything may have changed.
// The only error is ErrClosed.
func (m *Monitor) Next() (Change, error) {
	for {
		msgs, from, err := m.socket.Receive()
		switch {
		case m.closed.Load(): // the error for it may be any
			return Change{}, ErrClosed
		case errors.Is(err, unix.ENOBUFS):
			m.drain()
			return everything, nil
		case err != nil: // unknown; the pause keeps the loop from occupying a core
			time.Sleep(errorPause)
			return everything, nil
		case from.Pid != 0:
			continue // not the kernel's
		}
		var c Change
		for i := range msgs {
			m.note(&c, &msgs[i])
		}
		if c.Link || c.Addrs || c.Routes || c.Valid != nil {
			return c, nil
		}
	}
}

// drain empties the socket after an overflow: until it is empty the kernel drops
// further messages, and does not tell again. It reads the descriptor itself, because
// a Receive with a time limit may end before it has looked, and the socket then stays
// deaf. It never waits, so that Close may wait for it.
func (m *Monitor) drain() {
	m.closing.Lock()
	defer m.closing.Unlock()
	var message [4096]byte // a longer one is cut: it is not read
	for !m.closed.Load() {
		_, _, err := unix.Recvfrom(m.socket.GetFd(), message[:], unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}

// note adds the content of one message. A message that cannot be read does not
// concern us.
func (m *Monitor) note(c *Change, msg *syscall.NetlinkMessage) {
	switch msg.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		// struct ifinfomsg: the index is the u32 at 4, the flags are the u32 at 8. Routes
		// end with their link without a message of their own. The interface may have
		// another master, and those above another MAC address.
		// A VLAN's interface comes without a message of the one below.
		if b := msg.Data; len(b) >= unix.SizeofIfInfomsg && (m.own(b[4:]) || m.concerns(b[4:]) || m.r.vlan != 0) {
			c.Routes, c.Addrs = true, true
			if m.own(msg.Data[4:]) {
				c.Link = true
				c.Down = c.Down || binary.NativeEndian.Uint32(msg.Data[8:])&unix.IFF_UP == 0
			}
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		// struct ifaddrmsg: likewise.
		if len(msg.Data) >= unix.SizeofIfAddrmsg && m.concerns(msg.Data[4:]) {
			c.Addrs, c.Routes = true, true
		}
	case unix.RTM_NEWNEIGH:
		m.noteNeighbour(c, msg.Data)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE, unix.RTM_NEWRULE, unix.RTM_DELRULE,
		unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		c.Routes = true
	}
}

// concerns reports whether an interface is this one, or served with it. A change of one
// that has just become so may be missed here; but whoever finds it in the chain reads its
// addresses and routes afterwards.
func (m *Monitor) concerns(index []byte) bool {
	return slices.Contains(*m.r.chain.Load(), int(binary.NativeEndian.Uint32(index)))
}

func (m *Monitor) own(index []byte) bool { return int(binary.NativeEndian.Uint32(index)) == m.r.index }

// noteNeighbour notes neighbours whose MAC addresses are known. If one is gone,
// or does not answer, its last address is still the best that is known.
func (m *Monitor) noteNeighbour(c *Change, b []byte) {
	// struct ndmsg: the index is the u32 at 4. It is checked first, because the
	// neighbours of other interfaces may be of any kind.
	if len(b) < unix.SizeofNdMsg || !m.concerns(b[4:]) {
		return
	}
	n, err := netlink.NeighDeserialize(b)
	if err != nil {
		return
	}
	if ip, mac, ok := located(n); ok {
		if c.Valid == nil {
			c.Valid = map[netip.Addr]wire.MAC{}
		}
		c.Valid[ip] = mac
	}
}

// located reads an entry of the neighbour table that has a MAC address which the
// kernel would send to, be it certain or doubtful.
func located(n *netlink.Neigh) (netip.Addr, wire.MAC, bool) {
	ip, ok := addrOf(n.IP)
	if !ok || n.State&(certain|doubtful) == 0 || len(n.HardwareAddr) != len(wire.MAC{}) {
		return ip, wire.MAC{}, false
	}
	return ip, wire.MAC(n.HardwareAddr), true
}
