// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
)

type statPeersFlags struct {
	daemonFlags
	sort        string
	limit, skip int
}

func (a *app) statPeersCmd() *cobra.Command {
	var f statPeersFlags
	orders := strings.Join(control.PeerOrders(), ", ")
	c := &cobra.Command{
		Use:   "peers",
		Short: "Show the nodes that a daemon has sessions with, and what those have carried",
		Long: `peers asks a daemon for its sessions with other nodes, its own and those of the
programs that use its interface, and sums them up: a row for each node. The counts of
earlier sessions between the same two endpoints are included. A node has a row for
each of its addresses that a session goes to.

  ROLE      of this node: initiator, which sends the requests; target, which
            executes them; or both
  OPEN      sessions that are there now
  SESSIONS  with those before them
  OPS       operations, and FRAMES, the frames of these
  RESENT    frames that an initiator sent again, or answers that a target gave
            again as the first was lost or late
  SENT, RECEIVED  bytes of packets, with their headers
  INFLIGHT  frames without an answer, or answers not yet acknowledged
  RTT       smoothed round trip, which an initiator measures; the longest
  SILENCE   time since the peer last showed that it lives

A node is listed as long as it has a session, at least until 30 s after its last
operation. Frames that the XDP program executes add only to OPS and FRAMES.
The metrics for Prometheus have the sums of up to 100 nodes; "xdpfab stat sessions"
shows each session.`,
		Example: `  xdpfab stat peers
  xdpfab stat peers --sort resent --limit 10
  xdpfab stat peers --interface eth0 --limit 0 --json`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.statPeers(c, &f) },
	}
	a.jsonFlag(c)
	f.register(c)
	fs := c.Flags()
	fs.StringVar(&f.sort, "sort", control.PeerOrders()[0], "order, the greatest first but for addresses: "+orders)
	fs.IntVar(&f.limit, "limit", 100, "most peers to show; 0: all")
	fs.IntVar(&f.skip, "skip", 0, "number of peers to leave out at the beginning")
	return c
}

func (a *app) statPeers(c *cobra.Command, f *statPeersFlags) error {
	if err := negative(c, "limit", "skip"); err != nil {
		return err
	}
	if !slices.Contains(control.PeerOrders(), f.sort) {
		return usage(c, "%v", unknown("order", f.sort, control.PeerOrders()))
	}
	d, err := f.dial(a, c)
	if err != nil {
		return err
	}
	defer d.Close()
	found, err := askPeers(c.Context(), d, "peer-nodes", f, func(p *control.PeerNodes) (int, []control.PeerNode) {
		return p.Total, p.Peers
	})
	if err != nil {
		return err
	}
	all := control.PeerNodes{Total: found.total, Peers: found.list}
	return a.print(all, func(w io.Writer) { printPeers(w, all, f.skip) })
}

// pages are the peers of several answers.
type pages[T any] struct {
	total int
	list  []T
}

// askPeers asks for pages until there are as many peers as wanted. Each page is of
// another moment, so sessions that come or go meanwhile may be missing, or there twice.
func askPeers[A, T any](ctx context.Context, d *control.Client, verb string, f *statPeersFlags,
	in func(*A) (int, []T)) (all pages[T], err error) {
	all.list = []T{} // not nil, which JSON calls null
	for {
		ask := control.AskPeers{Sort: f.sort, Skip: f.skip + len(all.list), Limit: control.MostPeers}
		if f.limit > 0 {
			ask.Limit = min(ask.Limit, f.limit-len(all.list))
		}
		var answer A
		if err := d.Call(ctx, verb, ask, &answer); err != nil {
			return all, err
		}
		total, page := in(&answer)
		all.total, all.list = total, append(all.list, page...)
		if len(page) < ask.Limit || len(all.list) == f.limit {
			return all, nil
		}
	}
}

func printPeers(w io.Writer, found control.PeerNodes, skipped int) {
	switch {
	case found.Total == 0:
		fmt.Fprintln(w, "no peers: no session is open at present; `xdpfab stat` counts those that were")
		return
	case len(found.Peers) == 0:
		fmt.Fprintf(w, "no peers behind %d: there are %d in all\n", skipped, found.Total)
		return
	}
	fmt.Fprintln(w, "PEER\tROLE\tOPEN\tSESSIONS\tOPS\tFRAMES\tRESENT\tSENT\tRECEIVED\tINFLIGHT\tRTT\tSILENCE")
	for _, p := range found.Peers {
		resident := ""
		if p.Resident > 0 {
			resident = fmt.Sprintf(" (%d resident)", p.Resident)
		}
		fmt.Fprintf(w, "%s\t%s\t%d%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%v\n", p.Peer, p.Role, p.Open, resident,
			p.Sessions, p.Ops, p.Frames, p.FramesResent+p.AnswersResent, p.BytesSent, p.BytesReceived, p.InFlight,
			roundTrip(p.RTT), p.Silence.Round(time.Millisecond))
	}
	if n := len(found.Peers); n < found.Total {
		fmt.Fprintf(w, "\n%d of %d peers, behind %d: see more with --limit and --skip\n", n, found.Total, skipped)
	}
}

// roundTrip prints a smoothed round trip, or that none was measured.
func roundTrip(rtt time.Duration) string {
	if rtt == 0 {
		return "-"
	}
	return rtt.Round(100 * time.Nanosecond).String()
}
