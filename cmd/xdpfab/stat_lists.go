// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
)

// order is what a list can be sorted by: the first one of a list's orders by name, the
// others by what is greatest.
type order[T any] struct {
	name string
	by   func(x *T) uint64
}

func orderNames[T any](orders []order[T]) (names []string) {
	for _, o := range orders {
		names = append(names, o.name)
	}
	return names
}

// sorted sorts a list, in which equals stay as they are.
func sorted[T any](list []T, orders []order[T], name string) {
	if i := slices.IndexFunc(orders, func(o order[T]) bool { return o.name == name }); i > 0 {
		by := orders[i].by
		slices.SortStableFunc(list, func(x, y T) int { return cmp.Compare(by(&y), by(&x)) })
	}
}

// listOf completes a command below stat that shows a list in one of some orders.
func (a *app) listOf(c *cobra.Command, orders []string,
	show func(c *cobra.Command, f *daemonFlags, sort string) error) *cobra.Command {
	var f daemonFlags
	var sort string
	c.Args = exactArgs()
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !slices.Contains(orders, sort) {
			return usage(c, "%v", unknown("order", sort, orders))
		}
		return show(c, &f, sort)
	}
	a.jsonFlag(c)
	f.register(c)
	c.Flags().StringVar(&sort, "sort", orders[0], "order, the greatest first but for the first one: "+
		strings.Join(orders, ", "))
	return c
}

// ofDaemon asks a daemon for something that a list is made of.
func ofDaemon[T any](a *app, c *cobra.Command, f *daemonFlags, verb string) (result T, err error) {
	d, err := f.dial(a, c)
	if err != nil {
		return result, err
	}
	defer d.Close()
	return result, d.Call(c.Context(), verb, nil, &result)
}

func (a *app) statSessionsCmd() *cobra.Command {
	return a.listOf(&cobra.Command{
		Use:   "sessions",
		Short: "Show the sessions of a daemon, one by one",
		Long: `sessions asks a daemon for its sessions with other nodes, its own and those of
programs, and shows how each of them stands. "xdpfab stat peers" sums up what the
sessions with a node have carried; --json has all counts of each session.

  SESSION   id on the wire, by which the debug log and captures name it
  ENDPOINT  number of the endpoint of this node
  BEFORE    earlier sessions between the same two endpoints
  OPS       operations, with those of the earlier ones; RESENT, frames or answers that
            were sent again
  INFLIGHT  frames without an answer, or answers not yet acknowledged
  SILENCE   time since the peer last showed that it lives`,
		Example: `  xdpfab stat sessions
  xdpfab stat sessions --sort silence --json`,
	}, control.PeerOrders(), func(c *cobra.Command, f *daemonFlags, sort string) error {
		d, err := f.dial(a, c)
		if err != nil {
			return err
		}
		defer d.Close()
		found, err := askPeers(c.Context(), d, "peers", &statPeersFlags{sort: sort},
			func(p *control.Peers) (int, []host.PeerInfo) { return p.Total, p.Peers })
		if err != nil {
			return err
		}
		all := control.Peers{Total: found.total, Peers: found.list}
		return a.print(all, func(w io.Writer) { printSessions(w, all.Peers) })
	})
}

func printSessions(w io.Writer, list []host.PeerInfo) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no sessions are open at present; `xdpfab stat` counts those that were")
		return
	}
	fmt.Fprintln(w, "SESSION\tPEER\tROLE\tENDPOINT\tSTATE\tBEFORE\tOPS\tRESENT\tINFLIGHT\tRTT\tSILENCE")
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s%s\t%d\t%d\t%d\t%d\t%s\t%v\n", p.Session, p.Peer, p.Role, p.Endpoint,
			p.State, ifThen(p.Resident, ", resident"), max(p.Sessions, 1)-1, p.Ops, p.FramesResent+p.AnswersResent,
			p.InFlight, roundTrip(p.RTT), p.Silence.Round(time.Millisecond))
	}
}

// regionRow is a region of the daemon or of a program.
type regionRow struct {
	Guest *int `json:"guest,omitempty"` // process of the program; none for the daemon's own
	control.Region
	Applied *control.Applied `json:"applied"` // nil if no counter has the operations applied to it
}

// rowOf is the row of a region of the daemon.
func rowOf(r control.Region) regionRow {
	row := regionRow{Region: r}
	if r.Backing != "resident" || r.Applied != (control.Applied{}) {
		row.Applied = &r.Applied
	}
	return row
}

var regionOrders = []order[regionRow]{
	{"name", nil},
	{"size", func(r *regionRow) uint64 { return r.Size }},
	{"ops", func(r *regionRow) uint64 { return r.Region.Applied.Fetching + r.Region.Applied.NonFetching }},
	{"bytes", func(r *regionRow) uint64 {
		return r.Region.Applied.FetchingBytes + r.Region.Applied.NonFetchingBytes
	}},
}

func (a *app) statRegionsCmd() *cobra.Command {
	return a.listRegions(&cobra.Command{
		Use:   "regions",
		Short: "Show the regions of a daemon and of its guests, and what was applied to them",
		Long: `regions asks a daemon for the regions that it serves, and for those that programs
serve by its interface.

  GUEST           process of the program; - for the daemon's own
  ACCESS          rights of peers; (key) if they have to prove an authorization key
  FETCHING        operations of peers that returned what they found, such as reads,
                  fetch-adds and swaps, since the region was registered here
  NON-FETCHING    those that returned nothing, such as writes
  BYTES           size of the region; behind a count, the bytes that those reached

The XDP program does not count by region: a resident region has - in place of counts,
and null in JSON. "xdpfab stat" has the sum of them all.

At most 10000 regions of programs are listed.`,
		Example: `  xdpfab stat regions
  xdpfab stat regions --sort ops --interface eth0`,
	})
}

// listRegions completes a command that lists regions.
func (a *app) listRegions(c *cobra.Command) *cobra.Command {
	return a.listOf(c, orderNames(regionOrders), func(c *cobra.Command, f *daemonFlags, sort string) error {
		list, err := ofDaemon[control.RegionList](a, c, f, "region-list")
		if err != nil {
			return err
		}
		rows := []regionRow{}
		for _, r := range list.Regions {
			rows = append(rows, rowOf(r))
		}
		for _, r := range list.Guests {
			row := rowOf(control.Region{Name: r.Name, Size: r.Size, Access: r.Access, AuthKey: r.AuthKey,
				Backing: "guest", Applied: r.Applied})
			row.Guest = &r.Guest
			rows = append(rows, row)
		}
		sorted(rows, regionOrders, sort)
		return a.print(rows, func(w io.Writer) { printRegions(w, rows, list.Total-len(list.Guests)) })
	})
}

func printRegions(w io.Writer, rows []regionRow, unlisted int) {
	if len(rows) == 0 {
		fmt.Fprintln(w, "no regions: add one with xdpfab region create NAME=SIZE, or have a program serve one")
		return
	}
	fmt.Fprintln(w, "REGION\tGUEST\tBYTES\tACCESS\tBACKING\tFETCHING\tBYTES\tNON-FETCHING\tBYTES")
	for _, r := range rows {
		guest, counts := "-", "-\t-\t-\t-"
		if r.Guest != nil {
			guest = strconv.Itoa(*r.Guest)
		}
		if x := r.Applied; x != nil {
			counts = fmt.Sprintf("%d\t%d\t%d\t%d", x.Fetching, x.FetchingBytes, x.NonFetching, x.NonFetchingBytes)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", printable(orDash(r.Name)), guest, r.Size, accessOf(r.Region),
			printable(r.Backing), counts)
	}
	if unlisted > 0 {
		fmt.Fprintf(w, "\n%d further regions of programs are not listed\n", unlisted)
	}
}

// accessOf says what peers may do with a region, and whether they have to prove a key.
func accessOf(r control.Region) string {
	access := orDash(strings.Join(r.Access, " "))
	if r.AuthKey {
		access += " (key)"
	}
	return access
}

var guestOrders = []order[control.Guest]{
	{"pid", nil},
	{"ops", func(g *control.Guest) uint64 { return g.Completed }},
	{"memory", func(g *control.Guest) uint64 { return uint64(g.Memory) }},
	{"peers", func(g *control.Guest) uint64 { return uint64(g.Peers) }},
	{"refused", func(g *control.Guest) uint64 { return g.Refused }},
}

func (a *app) statGuestsCmd() *cobra.Command {
	return a.listOf(&cobra.Command{
		Use:   "guests",
		Short: "Show the programs that use a daemon's interface",
		Long: `guests asks a daemon for the programs that are attached to it.

  SERVING    endpoints that accept sessions
  BYTES      memory that its regions span
  TAKEN      entries of its submission ring; of these, REFUSED were no operation
  DONE       completions that it was given
  QUEUE      that it borrows`,
		Example: `  xdpfab stat guests
  xdpfab stat guests --sort memory --json`,
	}, orderNames(guestOrders), func(c *cobra.Command, f *daemonFlags, sort string) error {
		s, err := ofDaemon[control.Status](a, c, f, "status")
		if err != nil {
			return err
		}
		list := append([]control.Guest{}, s.Guests...)
		sorted(list, guestOrders, sort)
		return a.print(list, func(w io.Writer) { printGuests(w, list, s.Interface.Name) })
	})
}

func printGuests(w io.Writer, list []control.Guest, ifname string) {
	if len(list) == 0 {
		fmt.Fprintf(w, "no guests: no program has attached to the daemon of %s\n", ifname)
		return
	}
	fmt.Fprintln(w, "GUEST\tUSER\tENDPOINTS\tSERVING\tPEERS\tREGIONS\tBYTES\tTAKEN\tREFUSED\tDONE\tQUEUE")
	for _, g := range list {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", g.PID, cmp.Or(g.User, strconv.Itoa(int(g.UID))),
			g.Endpoints, g.Serving, g.Peers, g.Regions, g.Memory, g.Taken, g.Refused, g.Completed, borrowedBy(&g))
	}
}
