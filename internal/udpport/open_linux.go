// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"errors"
	"net/netip"
)

// openPort opens a port at some addresses.
func openPort(addrs []netip.Addr, mtu int, o Options) (port, error) {
	if o.Portable {
		return openPlain(addrs, mtu)
	}
	var sockets []*socket
	for _, a := range addrs {
		s, err := openSocket(a, o)
		if err != nil {
			for _, s := range sockets {
				err = errors.Join(err, s.close())
			}
			return nil, err
		}
		sockets = append(sockets, s)
	}
	q, err := newQueue(sockets, mtu)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (q *Queue) counters() map[string]uint64 { return q.tally.counters() }
