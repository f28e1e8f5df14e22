// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Star is several namespaces around a switch: each side's interface ends at a
// bridge in a namespace of its own, so any side reaches any other.
type Star struct {
	Sides []*Side
	hub   *Side // holds the bridge
}

// NewStar builds a star of n sides, which differ in nothing but their addresses:
// side i is 10.77.0.(i+1) and fd00:77::(i+1). It needs what New needs. On error
// nothing is left behind; otherwise call Close.
func NewStar(n int, o Options) (s *Star, err error) {
	if n < 2 || n > 250 || o.Queues < 0 || o.MTU < 0 {
		return nil, fmt.Errorf("veth: star of %d sides, %+v: want 2..250 and no negative option", n, o)
	}
	sweep()
	stem := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), serial.Add(1))
	s = &Star{hub: newSide(stem+"-hub", 254)}
	for i := range n {
		s.Sides = append(s.Sides, newSide(fmt.Sprintf("%s-s%d", stem, i), byte(i+1)))
	}
	if err := s.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("veth: star: %w (needs CAP_SYS_ADMIN and CAP_NET_ADMIN)", err), s.Close())
	}
	return s, nil
}

func (s *Star) build(o Options) (err error) {
	if err := settle(append([]*Side{s.hub}, s.Sides...)...); err != nil {
		return err
	}
	h, err := netlink.NewHandleAt(s.hub.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "switch", o.MTU
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := h.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	if err := h.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	for i, side := range s.Sides {
		if err := plug(h, bridge, i, side, o); err != nil {
			return fmt.Errorf("side %d: %w", i, err)
		}
		if err := side.configure(); err != nil {
			return fmt.Errorf("side %d: %w", i, err)
		}
	}
	return awaitRunning(append([]*Side{s.hub}, s.Sides...)...)
}

// plug joins a side to the bridge by a veth.
func plug(h *netlink.Handle, bridge netlink.Link, i int, side *Side, o Options) error {
	port := portName(i)
	if err := connect(h, port, oddIndex+i, side, o); err != nil {
		return err
	}
	l, err := h.LinkByName(port)
	if err != nil {
		return err
	}
	return h.LinkSetMaster(l, bridge)
}

// connect makes a veth with one end in the handle's namespace, under the port's
// name and index and up, and the other in the side's.
func connect(h *netlink.Handle, port string, index int, side *Side, o Options) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Index = port, o.MTU, index
	attrs.NumTxQueues, attrs.NumRxQueues = max(o.Queues, 1), max(o.Queues, 1)
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerNamespace = IfName, netlink.NsFd(side.NS)
	if err := h.LinkAdd(v); err != nil {
		return err
	}
	return h.LinkSetUp(v)
}

// Port returns the namespace that holds the switch, and the name of the interface there
// at which a side ends: all that the side sends and receives passes it.
func (s *Star) Port(side int) (hub *Side, name string) { return s.hub, portName(side) }

func portName(side int) string { return fmt.Sprintf("port%d", side) }

// Close removes everything. It is idempotent.
func (s *Star) Close() error { return remove(s.hub, s.Sides...) }
