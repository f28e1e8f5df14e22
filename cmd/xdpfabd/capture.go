// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/capture"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// captures is whether somebody captures packets: one program at a time.
type captures struct{ taken atomic.Bool }

// admitCapture lets a program see packets. They contain the keys and the contents of
// regions, those of guests included.
func (s *server) admitCapture(_ context.Context, p control.Program) (control.Place, error) {
	if p.UID != 0 && p.UID != uint32(os.Geteuid()) {
		return nil, control.Denied("user %d: only root and the daemon's own user, %d, may capture packets, which hold "+
			"the keys of regions and their contents; ask one of them", p.UID, os.Geteuid())
	}
	if s.host.Node().Dev.Info().Transport == udpnode.UDP.String() {
		return nil, errors.New("the daemon has UDP sockets, whose packets tcpdump sees: " +
			"tcpdump -i any -w x.pcap udp port 34997")
	}
	if !s.captures.taken.CompareAndSwap(false, true) {
		return nil, errors.New("another program captures packets of this daemon: one at a time can; wait, or end " +
			"that one")
	}
	return &capturing{s: s, log: s.log.With("pid", p.PID, "uid", p.UID)}, nil
}

// elsewhere refuses captures at further sockets. They may be in containers, whose root is
// not the host's.
func elsewhere(context.Context, control.Program) (control.Place, error) {
	return nil, control.Denied("this is a further control socket of the daemon, and packets can be captured at its " +
		"first alone: give --control the path that the daemon's log has as control=")
}

// capturing is a program that sees packets. It implements control.Place.
type capturing struct {
	s       *server
	log     *slog.Logger
	dropped uint64
	free    sync.Once
}

// Host implements control.Place.
func (c *capturing) Host(conn *net.UnixConn) {
	err := control.ServeCapture(conn, c.begin)
	log := c.log
	if err != nil {
		log = log.With("cause", err)
	}
	log.Info("capture ends", "dropped", c.dropped)
}

// Leave implements control.Place.
func (c *capturing) Leave() { c.free.Do(func() { c.s.captures.taken.Store(false) }) }

// begin has the engines show their packets.
func (c *capturing) begin(o capture.Options) (start capture.Start, write func(io.Writer, <-chan struct{}) error,
	err error) {
	n := c.s.host.Node()
	x, err := capture.New(len(n.Steppers), o)
	if err != nil {
		return start, nil, err
	}
	for q, st := range n.Steppers {
		show := x.Tap(q)
		st.Call(func() { st.Eng.Tap(show) })
	}
	if o.Resident {
		c.s.host.ShowResident(true)
	}
	before := c.executed()
	c.log.Info("capture begins", "peers", o.Peers, "snaplen", o.Snaplen, "resident", o.Resident)
	quiet := func() {
		c.s.host.ShowResident(false)
		for _, st := range n.Steppers {
			st.Call(func() { st.Eng.Tap(nil) })
		}
		c.Leave() // before the client hears that the capture has ended: the next may begin
	}
	last := func(t *capture.Totals) {
		t.Executed = c.executed() - before
		t.Lent = c.s.lentOut()
		c.dropped = t.Dropped
	}
	start = capture.Start{Interface: n.Dev.Info().Name, Queues: len(n.Steppers), Resident: o.Resident}
	return start, func(w io.Writer, stop <-chan struct{}) error { return x.Write(w, stop, quiet, last) }, nil
}

// executed is how many requests the XDP program has answered, which no engine sees.
func (c *capturing) executed() uint64 {
	all, err := c.s.host.Node().Stats()
	if err != nil {
		return 0 // of an interface that is gone
	}
	return all["xdp_executed"]
}
