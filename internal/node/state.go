// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Name returns the address of the node's endpoint of a number: on UDP sockets the IP
// address, elsewhere that on the Ethernet segment. A guest has its host's.
func (n *Node) Name(endpoint uint16) string {
	a := wire.Addr{MAC: n.Dev.MAC(), Endpoint: endpoint}
	if ip := n.Dev.Info().Address; ip != "" {
		a.MAC, a.IP = wire.MAC{}, netip.MustParseAddr(ip)
	}
	return a.String()
}

// Progress moves a node with manual progress on by one step of each engine, and returns
// how much there was to do.
func (n *Node) Progress() int {
	done := 0
	for _, t := range n.Turns {
		done += t.Progress()
	}
	n.CountPeers()
	return done
}

// Stats returns every statistic of the node by name: those of the engines, of the
// interface, and of the XDP program.
func (n *Node) Stats() (map[string]uint64, error) {
	all, err := n.Dev.Counters()
	if err != nil {
		return nil, fmt.Errorf("xdpfab: domain on %s: %w", n.Label(), err)
	}
	for _, st := range n.Steppers {
		st.Call(st.Eng.Publish)
		c := st.Eng.Counters()
		c.Each(func(name string, v uint64) { all[name] += v })
	}
	if err := n.Residents.Count(all); err != nil {
		return nil, fmt.Errorf("xdpfab: domain on %s: %w", n.Label(), err)
	}
	return all, nil
}
