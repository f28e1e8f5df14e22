// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"fmt"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Interface is what Fit looks at.
type Interface struct {
	Name, MAC string
	Index     int
	MTU       int // bytes
	Up        bool
	Addresses []string // with the length of the network's prefix
}

// Fit returns the MTU that UDP sockets would have on an interface, and the addresses that
// they would serve, each with the length of its network's prefix; or why there are none.
func Fit(i *Interface) (mtu int, served []netip.Prefix, err error) {
	addrs, err := udpport.Addrs(i.Name)
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("udp: %w", err)
	case !i.Up:
		return 0, nil, fmt.Errorf("%s: is down; `ip link set %s up`", i.Name, i.Name)
	case i.MTU < wire.MinMTU:
		return 0, nil, fmt.Errorf("%s: MTU %d is too small, want at least %d", i.Name, i.MTU, wire.MinMTU)
	}
	for _, a := range addrs {
		bits := a.BitLen()
		for _, cidr := range i.Addresses {
			if p, err := netip.ParsePrefix(cidr); err == nil && p.Addr() == a {
				bits = p.Bits()
			}
		}
		served = append(served, netip.PrefixFrom(a, bits))
	}
	return min(i.MTU, udpport.MaxMTU), served, nil
}
