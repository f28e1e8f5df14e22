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
	"github.com/xdpfab/xdpfab/internal/host"
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
		Short: "Show what a daemon's sessions with each peer have carried",
		Long: `peers asks a daemon for its sessions with other nodes, its own and those of the
programs that use its interface, and for what they have carried. The counts of
earlier sessions between the same two endpoints are included.

  PEER      address; of a peer that began the session, without its endpoint
  ROLE      initiator: this node sends the requests; target: it executes them
  ENDPOINT  number of the endpoint of this node
  OPS       operations sent or executed, and FRAMES the request frames of these
  RESENT    frames that an initiator sent again, or answers that a target gave
            again as the first was lost or late
  SENT, RECEIVED  bytes of packets, with their headers
  INFLIGHT  frames without an answer, or answers not yet acknowledged
  RTT       smoothed round trip, which an initiator measures
  SILENCE   time since the peer last showed that it lives

A peer is listed as long as it has a session, at least until 30 s after its last
operation. Frames that the XDP program executes add only to OPS and FRAMES.
The metrics for Prometheus have the sums of up to 100 nodes; "xdpfab stat sessions"
shows how each session stands.`,
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
	fs.IntVar(&f.limit, "limit", 100, "show so many sessions at most; 0 for all")
	fs.IntVar(&f.skip, "skip", 0, "leave out so many of the first")
	return c
}

func (a *app) statPeers(c *cobra.Command, f *statPeersFlags) error {
	if f.limit < 0 || f.skip < 0 {
		return usage(c, "limit and skip: want 0 or more")
	}
	if !slices.Contains(control.PeerOrders(), f.sort) {
		return usage(c, "%v", unknown("order", f.sort, control.PeerOrders()))
	}
	d, err := f.dial(a, c)
	if err != nil {
		return err
	}
	defer d.Close()
	found, err := askPeers(c.Context(), d, f)
	if err != nil {
		return err
	}
	return a.print(found, func(w io.Writer) { printPeers(w, found, f.skip) })
}

// askPeers asks for pages until there are as many peers as wanted. Each page is of
// another moment, so sessions that come or go meanwhile may be missing, or there twice.
func askPeers(ctx context.Context, d *control.Client, f *statPeersFlags) (all control.Peers, err error) {
	all.Peers = []host.PeerInfo{} // not nil, which JSON calls null
	for {
		ask := control.AskPeers{Sort: f.sort, Skip: f.skip + len(all.Peers), Limit: control.MostPeers}
		if f.limit > 0 {
			ask.Limit = min(ask.Limit, f.limit-len(all.Peers))
		}
		var page control.Peers
		if err := d.Call(ctx, "peers", ask, &page); err != nil {
			return all, err
		}
		all.Total, all.Peers = page.Total, append(all.Peers, page.Peers...)
		if len(page.Peers) < ask.Limit || len(all.Peers) == f.limit {
			return all, nil
		}
	}
}

func printPeers(w io.Writer, found control.Peers, skipped int) {
	switch {
	case found.Total == 0:
		fmt.Fprintln(w, "no peers: no session is open at present; `xdpfab stat` counts those that were")
		return
	case len(found.Peers) == 0:
		fmt.Fprintf(w, "no peers behind %d: there are %d in all\n", skipped, found.Total)
		return
	}
	fmt.Fprintln(w,
		"PEER\tROLE\tENDPOINT\tSTATE\tSESSIONS\tOPS\tFRAMES\tRESENT\tSENT\tRECEIVED\tINFLIGHT\tRTT\tSILENCE")
	for _, p := range found.Peers {
		rtt := "-"
		if p.RTT > 0 {
			rtt = p.RTT.Round(100 * time.Nanosecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%v\n", p.Peer, p.Role, p.Endpoint,
			p.State, ifThen(p.Resident, ", resident"), p.Sessions, p.Ops, p.Frames, p.FramesResent+p.AnswersResent,
			p.BytesSent, p.BytesReceived, p.InFlight, rtt, p.Silence.Round(time.Millisecond))
	}
	if n := len(found.Peers); n < found.Total {
		fmt.Fprintf(w, "\n%d of %d sessions, behind %d: see more with --limit and --skip\n", n, found.Total, skipped)
	}
}
