// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

const (
	// answerLimit is the time that the kernel's three attempts take, one a
	// second.
	answerLimit = 3 * time.Second
	// answerPoll and longestPoll are the times between the first two looks at the table,
	// and the last two. The answer takes microseconds on a LAN; thousands may wait for
	// answers that do not come, and must not keep the kernel busy.
	answerPoll, longestPoll = 2 * time.Millisecond, 64 * time.Millisecond

	// certain are the states in which the address is known to be right.
	certain = unix.NUD_REACHABLE | unix.NUD_PERMANENT | unix.NUD_NOARP
	// doubtful are those in which it was right some time ago.
	doubtful = unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
)

// neighbour returns the MAC address of a node on the link. An entry that is missing,
// failed or doubtful makes the kernel ask first: frames to a stale address would be lost
// unnoticed, because the kernel does not know that its entry is in use.
func (r *Resolver) neighbour(ctx context.Context, via int, ip netip.Addr) (wire.MAC, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errSilent)
	defer cancel()
	asked, poll := false, answerPoll
	enough := certain // states in which the entry's address is taken
	for {
		n, err := r.entry(via, ip)
		if err != nil {
			return wire.MAC{}, fmt.Errorf("neighbour %v on %s: %w", ip, r.name, err)
		}
		switch {
		case n.State&enough != 0 && len(n.HardwareAddr) == len(wire.MAC{}):
			return wire.MAC(n.HardwareAddr), nil
		case !asked:
			if err := r.prompt(n); err != nil {
				return wire.MAC{}, err
			}
			// The entry was unknown a moment ago. A neighbour that asks for this
			// node meanwhile makes it doubtful, so that the kernel would not ask
			// before 5 s; but what it says of itself is as good as an answer.
			asked, enough = true, certain|doubtful
			continue // on many links the answer is there by now
		case n.State&unix.NUD_FAILED != 0:
			return wire.MAC{}, r.silent(ip)
		}
		select {
		case <-time.After(poll):
			poll = min(2*poll, longestPoll)
		case <-ctx.Done():
			if context.Cause(ctx) == errSilent {
				return wire.MAC{}, r.silent(ip)
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) { // silent for as long as the caller wanted to wait
				return wire.MAC{}, fmt.Errorf("%w: %w", r.silent(ip), context.Cause(ctx))
			}
			return wire.MAC{}, fmt.Errorf("waiting for neighbour %v on %s: %w", ip, r.name, context.Cause(ctx))
		}
	}
}

// errSilent distinguishes our own limit from the caller's.
var errSilent = errors.New("time limit")

func (r *Resolver) silent(ip netip.Addr) error {
	return fmt.Errorf("%v on %s: %w; see `ip neigh show %v dev %s`: is the peer up and on this segment?",
		ip, r.name, ErrUnreachable, ip, r.name)
}

// entry returns the neighbour's entry in the kernel's table; its state is NUD_NONE if
// there is none. It asks for that one alone: the table has one for each address that
// anybody waits for.
func (r *Resolver) entry(via int, ip netip.Addr) (netlink.Neigh, error) {
	family := netlink.FAMILY_V4
	if ip.Is6() {
		family = netlink.FAMILY_V6
	}
	none := netlink.Neigh{LinkIndex: via, Family: family, IP: ip.AsSlice(), State: unix.NUD_NONE}
	answers, err := ask(r, func(*netlink.Handle) ([][]byte, error) {
		q := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, 0)
		q.Sockets = r.single
		q.AddData(&netlink.Ndmsg{Family: uint8(family), Index: uint32(via)})
		q.AddData(nl.NewRtAttr(netlink.NDA_DST, ip.AsSlice()))
		return q.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return none, nil
	case err != nil:
		return none, err
	case len(answers) == 0:
		return none, nil
	}
	n, err := netlink.NeighDeserialize(answers[0])
	if err != nil {
		return none, err
	}
	return *n, nil
}

// prompt makes the kernel ask for the neighbour now.
func (r *Resolver) prompt(n netlink.Neigh) error {
	// When an unknown entry is used, the kernel resolves it by broadcast. A doubtful
	// one it would verify only after 5 s, and at the very address in doubt, so that
	// a replaced NIC would take 3 s more; one that it thinks certain it would not
	// verify at all. So the entry is made unknown first.
	use := netlink.Neigh{LinkIndex: n.LinkIndex, Family: n.Family, IP: n.IP, State: unix.NUD_NONE}
	_, err := ask(r, func(h *netlink.Handle) (_ struct{}, err error) {
		if n.State&(unix.NUD_REACHABLE|doubtful) != 0 {
			err = h.NeighSet(&use)
		}
		use.Flags = netlink.NTF_USE
		return struct{}{}, errors.Join(err, h.NeighSet(&use))
	})
	if err != nil {
		return fmt.Errorf(
			"asking for neighbour %v on %s: %w (needs CAP_NET_ADMIN; `ping %v` once does the same)",
			n.IP, r.name, err, n.IP)
	}
	return nil
}
