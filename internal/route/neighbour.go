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
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

const (
	// answerLimit is the time that the kernel's three attempts take, one a
	// second.
	answerLimit = 3 * time.Second
	// answerPoll is how often the table is looked at; the answer takes
	// microseconds on a LAN.
	answerPoll = 2 * time.Millisecond

	// certain are the states in which the address is known to be right.
	certain = unix.NUD_REACHABLE | unix.NUD_PERMANENT | unix.NUD_NOARP
	// doubtful are those in which it was right some time ago.
	doubtful = unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
)

// neighbour returns the MAC address of a node on the link. An entry that is missing,
// failed or doubtful makes the kernel ask first: frames to a stale address would be lost
// unnoticed, because the kernel does not know that its entry is in use.
func (r *Resolver) neighbour(ctx context.Context, ip netip.Addr) (wire.MAC, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errSilent)
	defer cancel()
	tick := time.NewTicker(answerPoll)
	defer tick.Stop()
	for asked := false; ; {
		n, err := r.entry(ip)
		if err != nil {
			return wire.MAC{}, fmt.Errorf("route: neighbour %v on %s: %w", ip, r.name, err)
		}
		switch {
		case n.State&certain != 0 && len(n.HardwareAddr) == len(wire.MAC{}):
			return wire.MAC(n.HardwareAddr), nil
		case !asked:
			if err := r.prompt(n); err != nil {
				return wire.MAC{}, err
			}
			asked = true
			continue // on many links the answer is there by now
		case n.State&unix.NUD_FAILED != 0:
			return wire.MAC{}, r.silent(ip)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if context.Cause(ctx) == errSilent {
				return wire.MAC{}, r.silent(ip)
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) { // silent for as long as the caller wanted to wait
				return wire.MAC{}, fmt.Errorf("%w: %w", r.silent(ip), context.Cause(ctx))
			}
			return wire.MAC{}, fmt.Errorf("route: waiting for neighbour %v on %s: %w", ip, r.name, context.Cause(ctx))
		}
	}
}

// errSilent distinguishes our own limit from the caller's.
var errSilent = errors.New("time limit")

func (r *Resolver) silent(ip netip.Addr) error {
	return fmt.Errorf("route: %v on %s: %w; see `ip neigh show %v dev %s`: is the peer up and on this segment?",
		ip, r.name, ErrUnreachable, ip, r.name)
}

// entry returns the neighbour's entry in the kernel's table; its state is NUD_NONE if
// there is none.
func (r *Resolver) entry(ip netip.Addr) (netlink.Neigh, error) {
	family := netlink.FAMILY_V4
	if ip.Is6() {
		family = netlink.FAMILY_V6
	}
	list, err := ask(r, func(h *netlink.Handle) ([]netlink.Neigh, error) { return h.NeighList(r.index, family) })
	if err != nil {
		return netlink.Neigh{}, err
	}
	for _, n := range list {
		if a, ok := addrOf(n.IP); ok && a == ip {
			return n, nil
		}
	}
	return netlink.Neigh{LinkIndex: r.index, Family: family, IP: ip.AsSlice(), State: unix.NUD_NONE}, nil
}

// prompt makes the kernel ask for the neighbour now.
func (r *Resolver) prompt(n netlink.Neigh) error {
	// When an unknown entry is used, the kernel resolves it by broadcast. A doubtful
	// one it would verify only after 5 s, and at the very address in doubt, so that
	// a replaced NIC would take 3 s more; one that it thinks certain it would not
	// verify at all. So the entry is made unknown first.
	use := netlink.Neigh{LinkIndex: r.index, Family: n.Family, IP: n.IP, State: unix.NUD_NONE}
	_, err := ask(r, func(h *netlink.Handle) (_ struct{}, err error) {
		if n.State&(unix.NUD_REACHABLE|doubtful) != 0 {
			err = h.NeighSet(&use)
		}
		use.Flags = netlink.NTF_USE
		return struct{}{}, errors.Join(err, h.NeighSet(&use))
	})
	if err != nil {
		return fmt.Errorf(
			"route: asking for neighbour %v on %s: %w (needs CAP_NET_ADMIN; `ping %v` once does the same)",
			n.IP, r.name, err, n.IP)
	}
	return nil
}
