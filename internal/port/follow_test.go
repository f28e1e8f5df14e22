// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Every change of the way to a peer is told with the new link.
func TestFollow(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	n := open(t, p.A, Options{RingSize: 32, UDP: true})
	watched(t, n)
	testnet.IP(t, p.A, "route add 10.90.0.0/16 via 10.77.0.2", "neigh add 10.77.0.7 lladdr 02:00:00:00:00:07 dev veth0")
	links, first, _ := follow(t, n, netip.MustParseAddr("10.90.1.1"))
	if first.Remote != wire.MAC(p.B.MAC) {
		t.Fatalf("first link %+v", first)
	}
	expect := func(what string, remote wire.MAC) {
		t.Helper()
		want := first
		want.Remote = remote
		links.await(t, what, func(l wire.Link) bool { return l == want })
	}
	testnet.IP(t, p.A, "neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev veth0")
	expect("the gateway's new MAC", mac(t, "02:00:00:00:00:02"))
	testnet.IP(t, p.A, "route replace 10.90.0.0/16 via 10.77.0.7")
	expect("the other gateway", mac(t, "02:00:00:00:00:07"))
	testnet.IP(t, p.A, "route replace 10.90.0.0/16 via inet6 fd00:77::2 dev veth0")
	expect("one that has to be asked for", wire.MAC(p.B.MAC))
}

// A peer whose MAC address has changed is found by the hint that it is silent,
// though the kernel still believes in the old address.
func TestSilentPeerIsAskedFor(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	n := open(t, p.A, Options{RingSize: 32, UDP: true})
	told := watched(t, n)
	for _, ip := range []netip.Addr{p.B.IP4, p.B.IP6} {
		links, first, stop := follow(t, n, ip)
		var now wire.MAC
		configure(t, p.B, func(h *netlink.Handle, l netlink.Link) error {
			now = wire.MAC(l.Attrs().HardwareAddr)
			now[5] ^= 0x55
			return h.LinkSetHardwareAddr(l, now[:])
		})
		if first.Remote == now {
			t.Fatalf("%v: the first link is %+v", ip, first)
		}
		done := make(chan struct{})
		go func() { // as an engine does, from a thread of its own
			defer close(done)
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if n.Silent(ip); len(links.all()) > 0 {
					return
				}
			}
		}()
		got := links.await(t, "the new MAC", func(l wire.Link) bool { return l.Remote == now })
		<-done
		want := first
		want.Remote = now
		if got != want {
			t.Errorf("%v: link %+v, want %+v", ip, got, want)
		}
		told.await(t, "the event", func(e Event) bool { return e.Kind == HopChanged && e.Remote == ip.String() })
		stop()
	}
}

// The router that leads to a peer gets another MAC address, as when one takes over
// from another.
func TestGatewayFailsOver(t *testing.T) {
	r := testnet.NewRouted(t, testnet.Options{})
	n := open(t, r.A, Options{RingSize: 32, UDP: true})
	watched(t, n)
	links, first, _ := follow(t, n, r.B.IP4)
	now, err := r.SwapGateway(r.A)
	if err != nil {
		t.Fatal(err)
	}
	if wire.MAC(now) == first.Remote {
		t.Fatal("the gateway has the old MAC")
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				n.Silent(r.B.IP4)
			}
		}
	}()
	links.await(t, "the new gateway", func(l wire.Link) bool { return l.Remote == wire.MAC(now) })
}

// A source address that goes is replaced by the next one.
func TestFollowSource(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.A, "addr add 10.77.0.5/24 dev veth0")
	n := open(t, p.A, Options{RingSize: 32, UDP: true})
	watched(t, n)
	links, first, stop := follow(t, n, p.B.IP4)
	if first.LocalIP != p.A.IP4 {
		t.Fatalf("%+v", first)
	}
	// The second address of a subnet is removed with the first, unless it is
	// promoted.
	testnet.IP(t, p.A, "addr del 10.77.0.1/24 dev veth0")
	testnet.IP(t, p.A, "addr replace 10.77.0.5/24 dev veth0")
	links.await(t, "the other source", func(l wire.Link) bool {
		return l.LocalIP.String() == "10.77.0.5" && l.Remote == first.Remote
	})
	stop()
	before := len(links.all())
	testnet.IP(t, p.A, "neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev veth0")
	other, _, _ := follow(t, n, p.B.IP4) // its calls come later, on the same goroutine
	testnet.IP(t, p.A, "neigh replace 10.77.0.2 lladdr 02:00:00:00:00:03 dev veth0")
	other.await(t, "the neighbour", func(l wire.Link) bool { return l.Remote == mac(t, "02:00:00:00:00:03") })
	if now := len(links.all()); now != before {
		t.Errorf("%d calls after stop", now-before)
	}
}

// A further follower of an address has nothing looked up if it has the way of the others
// already: thousands may follow one address. One that has another way is told.
func TestFollowAlike(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	n := open(t, p.A, Options{RingSize: 32, UDP: true})
	w := n.watcher // it is not begun: the test is its goroutine
	w.tell = func(Event) {}
	links, first, _ := follow(t, n, p.B.IP4)
	w.lookUp(true)
	<-w.wanted
	alike, _, _ := follow(t, n, p.B.IP4)
	if path := w.paths[p.B.IP4]; path.fresh || len(w.wanted) > 0 {
		t.Error("a way that all followers have is looked up")
	}
	other := first
	other.Remote[5] ^= 0x55
	var told record[wire.Link]
	n.Follow(wire.Addr{IP: p.B.IP4}, other, told.add)
	w.lookUp(true)
	if all := told.all(); len(all) != 1 || all[0] != first {
		t.Errorf("the one of another way is told %+v, want %+v once", all, first)
	}
	if calls := len(links.all()) + len(alike.all()); calls > 0 {
		t.Errorf("%d calls to those that have the way", calls)
	}
}

// A follower that has nothing looked up, because it has the way of the others, learns of
// a change whose notice the kernel dropped: after a loss all ways are looked up.
func TestFollowAlikeAfterLoss(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	n := open(t, p.A, Options{RingSize: 32, UDP: true})
	w := n.watcher // it is not begun: until then the test is its goroutine
	w.tell = func(Event) {}
	links, first, _ := follow(t, n, p.B.IP4)
	w.lookUp(true)
	<-w.wanted
	overrun(t, p.A)
	// From here on the kernel drops every notice, until the watcher reads.
	testnet.IP(t, p.A, "neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev veth0")
	var alike record[wire.Link]
	n.Follow(wire.Addr{IP: p.B.IP4}, first, alike.add)
	if path := w.paths[p.B.IP4]; path.fresh || len(w.wanted) > 0 {
		t.Fatal("a way that all followers have is looked up")
	}
	watched(t, n)
	want := first
	want.Remote = mac(t, "02:00:00:00:00:02")
	for _, r := range []*record[wire.Link]{links, &alike} {
		r.await(t, "the neighbour's new MAC", func(l wire.Link) bool { return l == want })
	}
}

// overrun has the kernel give notices of neighbours until it has dropped one, because
// nobody reads them.
func overrun(t *testing.T, side *testnet.Side) {
	t.Helper()
	const most = 1 << 16 // notices; some thousand suffice
	for round := range most / 256 {
		configure(t, side, func(h *netlink.Handle, l netlink.Link) error {
			for i := range 256 {
				err := h.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
					IP: net.IPv4(10, 77, 1, byte(i)), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 2, byte(round)}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if dropped(t, side) {
			return
		}
	}
	t.Fatalf("%d notices, and the kernel dropped none", most)
}

// dropped reports whether the kernel has dropped a message for a netlink socket of the
// side's namespace.
func dropped(t *testing.T, side *testnet.Side) (found bool) {
	t.Helper()
	err := side.Do(func() error {
		table, err := os.ReadFile("/proc/thread-self/net/netlink")
		lines := strings.Split(strings.TrimSpace(string(table)), "\n")
		drops := slices.Index(strings.Fields(lines[0]), "Drops")
		if err == nil && drops < 0 {
			err = fmt.Errorf("no column Drops in %q", lines[0])
		}
		for _, line := range lines[1:] {
			if err == nil {
				found = found || strings.Fields(line)[drops] != "0"
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Frames of a bridge's addresses leave from its MAC address, and those to it are this
// node's own. When it gets another one, followers learn that.
func TestFollowBridge(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	was, now := mac(t, "02:00:00:00:00:99"), mac(t, "02:00:00:00:00:98")
	testnet.IP(t, p.A, "link add br0 address "+was.String()+" type bridge", "link set br0 up", "link set veth0 master br0",
		"addr flush dev veth0", "addr add "+p.A.IP4.String()+"/24 dev br0")
	n := open(t, p.A, Options{RingSize: 32, UDP: true})
	watched(t, n)
	links, first, _ := follow(t, n, p.B.IP4)
	if first.Local != was || first.LocalIP != p.A.IP4 {
		t.Errorf("the first link is %+v, want from %v", first, was)
	}
	if l, err := n.Link(t.Context(), wire.Addr{MAC: was}); err != nil || l.Remote != n.MAC() {
		t.Errorf("the way to the bridge is %+v, %v; want to this node", l, err)
	}
	testnet.IP(t, p.A, "link set br0 address "+now.String())
	links.await(t, "the new MAC address", func(l wire.Link) bool { return l.Local == now && l.Remote == first.Remote })
}

// A link from an address of a bridge that is not served yet leaves from the MAC address
// that the bridge has by now.
func TestLinkFromNewBridgeAddress(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	was, now := mac(t, "02:00:00:00:00:99"), mac(t, "02:00:00:00:00:98")
	testnet.IP(t, p.A, "link add br0 address "+was.String()+" type bridge", "link set br0 up", "link set veth0 master br0",
		"addr flush dev veth0", "addr add "+p.A.IP4.String()+"/24 dev br0")
	n := open(t, p.A, Options{RingSize: 32, UDP: true})
	testnet.IP(t, p.A, "addr add 10.78.0.1/24 dev br0")
	source, to := netip.MustParseAddr("10.78.0.1"), netip.MustParseAddr("10.78.0.2")
	hop, err := n.resolver.Look(to, []netip.Addr{source})
	if err != nil || hop.Local != was || hop.Source != source {
		t.Fatalf("the hop is %+v, %v, want from %v", hop, err, was)
	}
	testnet.IP(t, p.A, "link set br0 address "+now.String())
	if l, err := n.linkOver(wire.Addr{IP: to}, hop, nil); err != nil || l.Local != now || l.LocalIP != source {
		t.Errorf("the link is %+v, %v, want from %v", l, err, now)
	}
}
