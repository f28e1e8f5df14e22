// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
)

var messages = flag.Int("messages", 20_000, "how many messages the members of TestMembers pass in all")

// members is the number of processes that pass messages, lanes how many goroutines of
// each send at the same time.
const (
	members = 8
	lanes   = 16
)

// Eight processes pass messages in a ring, and then each to all others, through a network
// that loses, repeats, reorders and delays frames: each message arrives once, whole and
// in its order. Members of even and of odd rank are on two switches with the faults in
// between, so that every step in the ring passes them.
func TestMembers(t *testing.T) {
	sides, wire := twoSwitches(t)
	wire.SetBoth(faultwire.Faults{Loss: 0.01, Duplicate: 0.02, Reorder: 0.05, Delay: 200 * time.Microsecond, Jitter: 300 * time.Microsecond})
	var addrs []string
	for _, s := range sides {
		addrs = append(addrs, s.MAC.String()+"/1")
	}
	const others = members * (members - 1) * lanes // messages of one round to all others
	each := max(*messages/5/others, 1)
	ring := (*messages - each*others + members*lanes - 1) / (members * lanes)
	outs := make([]lockedBuffer, members)
	var runs []*leashed
	for rank, s := range sides {
		o, err := json.Marshal(orders{IfName: s.IfName, Rank: rank, Addrs: addrs, Lanes: lanes, Ring: ring, Each: each})
		must(t, err)
		runs = append(runs, leash(t, disguised("member", memberEnv+"="+string(o)), s, &outs[rank]))
	}
	start, sum := time.Now(), account{}
	for rank := range runs {
		a := report(t, runs[rank], &outs[rank])
		if want := (account{Rank: rank, Sent: lanes * (ring + each*(members-1)), Ring: lanes * ring, Others: lanes * each * (members - 1), Bytes: a.Bytes, Resent: a.Resent}); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
		sum.Sent, sum.Ring, sum.Others, sum.Bytes, sum.Resent = sum.Sent+a.Sent, sum.Ring+a.Ring, sum.Others+a.Others, sum.Bytes+a.Bytes, sum.Resent+a.Resent
	}
	for _, r := range runs {
		r.letGo()
	}
	stats := wire.Stats()
	for _, e := range []faultwire.Event{faultwire.Lost, faultwire.Duplicated, faultwire.Reordered, faultwire.Delayed} {
		if stats.Total(e) == 0 {
			t.Errorf("no frame was %v: %v", e, stats)
		}
	}
	if sum.Sent < *messages || sum.Resent == 0 {
		t.Errorf("%+v: want at least %d messages, and frames resent", sum, *messages)
	}
	t.Logf("%d messages in the ring and %d to all others, %d bytes, in %v; %d frames resent; the wire: %v",
		sum.Ring, sum.Others, sum.Bytes, time.Since(start).Round(time.Millisecond), sum.Resent, stats)
}

// report waits for a member's account.
func report(t *testing.T, run *leashed, out *lockedBuffer) (a account) {
	t.Helper()
	deadline := time.After(memberLimit)
	for json.Unmarshal([]byte(out.String()), &a) != nil {
		select {
		case <-run.done:
			t.Fatalf("a member has ended: %s", out.String())
		case <-deadline:
			t.Fatalf("no account within %v: %s", memberLimit, out.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return a
}

// twoSwitches returns the sides of two switches, in turn, and the wire between the two.
func twoSwitches(t *testing.T) ([]*testnet.Side, *faultwire.Wire) {
	t.Helper()
	var stars [2]*testnet.Star
	for i := range stars {
		stars[i] = testnet.NewStar(t, members/2, testnet.Options{})
	}
	wire := faultwire.New(t, faultwire.Options{Seed: 1})
	t.Cleanup(func() { survived.addWire(wire.Stats()) })
	for i, end := range []*testnet.Side{wire.A, wire.B} {
		hub, port := stars[i].Port(0)
		uplink(t, end, hub, port)
	}
	var sides []*testnet.Side
	for i := range members {
		sides = append(sides, stars[i%2].Sides[i/2])
	}
	return sides, wire
}

// uplink plugs an end of the wire into the switch that has the port.
func uplink(t *testing.T, end, hub *testnet.Side, port string) {
	t.Helper()
	from, err := netlink.NewHandleAt(end.NS, unix.NETLINK_ROUTE)
	must(t, err)
	defer from.Close()
	to, err := netlink.NewHandleAt(hub.NS, unix.NETLINK_ROUTE)
	must(t, err)
	defer to.Close()
	link, err := from.LinkByIndex(end.IfIndex)
	must(t, err)
	const name = "uplink"
	must(t, from.LinkSetDown(link))
	must(t, from.LinkSetName(link, name))
	must(t, from.LinkSetNsFd(link, int(hub.NS)))
	moved, err := to.LinkByName(name)
	must(t, err)
	other, err := to.LinkByName(port)
	must(t, err)
	master, err := to.LinkByIndex(other.Attrs().MasterIndex)
	must(t, err)
	must(t, to.LinkSetMaster(moved, master))
	must(t, to.LinkSetUp(moved))
}
