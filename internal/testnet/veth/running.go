// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/dump"
)

// runningLimit is how long a link may take to run. An idle kernel takes well under a
// millisecond; otherwise it takes as long as others hold the lock of all network
// configuration.
const runningLimit = 30 * time.Second

// oddIndex is the first of the interface indexes that are given to one end of each
// veth; the kernel gives the other ends indexes that start at 2. If both were the
// same, the kernel's linkwatch would take the two for one interface, and might
// hold back its changes for a second.
const oddIndex = 101

// awaitRunning waits until every link of the sides that is up runs (IFF_RUNNING).
//
// Setting a link up does not make it run. A veth that is set up before its other end
// has no carrier; when the other end comes up, the kernel leaves it to a worker to
// activate the queueing discipline of the first, and until then frames written to it
// are dropped without an error. The worker marks the link as running in the same
// critical section, so a link that is seen to run also sends. A bridge forwards to a
// port, too, only from then on. Before the worker has looked at a veth for the first
// time, its state is not known, and the kernel says of such a link that it runs.
func awaitRunning(sides ...*Side) error {
	for _, s := range sides {
		if err := s.AwaitRunning(); err != nil {
			return fmt.Errorf("veth: %s: %w", s.Name, err)
		}
	}
	return nil
}

// AwaitRunning waits until every link of the side that is up runs.
func (s *Side) AwaitRunning() error {
	h, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for end := time.Now().Add(runningLimit); ; time.Sleep(200 * time.Microsecond) {
		idle, err := notRunning(h)
		if err != nil || idle == nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is up but does not run after %v (flags %#x, state %v): "+
				"want IFF_RUNNING; is something holding the kernel's network configuration?",
				idle.Name, runningLimit, idle.RawFlags, idle.OperState)
		}
	}
}

// notRunning returns a link that is up and does not run, or nil if there is
// none. (Some kernels put links of their own into every namespace; those are
// down.)
func notRunning(h *netlink.Handle) (*netlink.LinkAttrs, error) {
	links, err := dump.Whole(h.LinkList)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if a := l.Attrs(); a.RawFlags&unix.IFF_UP != 0 && !runs(l) {
			return a, nil
		}
	}
	return nil, nil
}

// runs reports whether a link that is up runs.
func runs(l netlink.Link) bool {
	a := l.Attrs()
	unseen := l.Type() == "veth" && a.OperState == netlink.OperUnknown // others may stay so
	return a.RawFlags&unix.IFF_RUNNING != 0 && !unseen
}
