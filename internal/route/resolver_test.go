// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// resolver returns a Resolver for a side's interface, used from outside its
// namespace.
func resolver(t testing.TB, side *testnet.Side) (r *Resolver) {
	t.Helper()
	err := side.Do(func() (err error) {
		r, err = New(side.IfIndex, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// resolve calls Resolve, which must succeed.
func resolve(t testing.TB, r *Resolver, dst string) Hop {
	t.Helper()
	hop, err := r.Resolve(context.Background(), addr(dst))
	if err != nil {
		t.Fatal(err)
	}
	hop.via = 0 // upper_test.go looks at it
	return hop
}

func TestOnLink(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A)
	for _, c := range []struct{ dst, src netip.Addr }{
		{p.B.IP4, p.A.IP4}, {p.B.IP6, p.A.IP6}, {netip.AddrFrom16(p.B.IP4.As16()), p.A.IP4},
	} {
		// The first time the kernel has to ask, the second time it knows.
		for range 2 {
			if got, want := resolve(t, r, c.dst.String()), (Hop{MAC: wire.MAC(p.B.MAC), Local: r.mac, Source: c.src}); got != want {
				t.Errorf("%v: got %+v, want %+v", c.dst, got, want)
			}
		}
	}
	for _, a := range []netip.Addr{p.A.IP4, p.A.IP6} {
		if got, want := resolve(t, r, a.String()), (Hop{MAC: wire.MAC(p.A.MAC), Local: r.mac, Source: a}); got != want {
			t.Errorf("own address: got %+v, want %+v", got, want)
		}
	}
	addrs, err := r.Addrs()
	if err != nil || len(addrs) < 2 || addrs[0] != p.A.IP4 {
		t.Errorf("addresses %v, %v", addrs, err)
	}
}

func TestLinkLocal(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.B, "addr add fe80::b/64 dev veth0 nodad")
	testnet.IP(t, p.A, "addr add fe80::a/64 dev veth0 nodad")
	hop := resolve(t, resolver(t, p.A), "fe80::b%veth0")
	if hop.MAC != wire.MAC(p.B.MAC) || !hop.Source.IsLinkLocalUnicast() {
		t.Errorf("got %+v", hop)
	}
}

// Three nodes in a row: A – gateway – C, the last on a stub behind the gateway.
func TestThroughGateway(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	q := testnet.NewPair(t, testnet.Options{}) // only its namespaces are used
	testnet.IP(t, p.B, "link add far0 type veth peer name veth9 netns "+q.A.Name,
		"addr add 10.90.0.1/24 dev far0", "addr add fd00:90::1/64 dev far0 nodad", "link set far0 up")
	testnet.IP(t, q.A, "link del veth0", "addr add 10.90.0.2/24 dev veth9", "addr add fd00:90::2/64 dev veth9 nodad", "link set veth9 up",
		"route add 10.77.0.0/24 via 10.90.0.1")
	testnet.IP(t, p.A, "route add 10.90.0.0/24 via 10.77.0.2", "route add fd00:90::/64 via fd00:77::2",
		"route add 10.91.0.0/24 via inet6 fd00:77::2 dev veth0", // IPv4 behind an IPv6 gateway
		"route add 10.92.0.0/24 dev veth0 via 10.77.0.2 src 10.77.0.1")
	r := resolver(t, p.A)
	for _, c := range []struct {
		dst     string
		gw, src netip.Addr
	}{
		{"10.90.0.2", p.B.IP4, p.A.IP4}, {"fd00:90::2", p.B.IP6, p.A.IP6},
		{"10.91.0.2", p.B.IP6, p.A.IP4}, {"10.92.0.2", p.B.IP4, p.A.IP4},
	} {
		if got, want := resolve(t, r, c.dst), (Hop{MAC: wire.MAC(p.B.MAC), Local: r.mac, Source: c.src, Gateway: c.gw}); got != want {
			t.Errorf("%s: got %+v, want %+v", c.dst, got, want)
		}
	}
}

// There are two ways of equal cost, over two interfaces: the resolver of each takes
// its own.
func TestMultipath(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.A, "link add dum0 type bridge", "link set dum0 up", "addr add 10.80.0.1/24 dev dum0",
		"neigh add 10.80.0.2 lladdr 02:00:00:00:00:99 dev dum0 nud permanent",
		"route add 10.90.0.0/24 nexthop via 10.77.0.2 dev veth0 nexthop via 10.80.0.2 dev dum0")
	for host := range 8 { // flows of either hash
		dst := netip.AddrFrom4([4]byte{10, 90, 0, byte(10 + host)}).String()
		if got := resolve(t, resolver(t, p.A), dst); got.Gateway != p.B.IP4 || got.Source != p.A.IP4 {
			t.Errorf("%s over veth0: %+v", dst, got)
		}
	}
}

// One who waits for a neighbour that does not answer looks at its entry alone, and less
// and less often: many may wait, and others must get answers meanwhile.
func TestSilentNeighbourTakesFewLooks(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A)
	if _, err := r.Resolve(t.Context(), addr("10.77.0.99")); !errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
	least, most := 3, 8+int(answerLimit/longestPoll)
	if looks := int(r.single[unix.NETLINK_ROUTE].Seq); looks < least || looks > most {
		t.Errorf("%d looks at the entry in %v, want %d to %d", looks, answerLimit, least, most)
	}
}

func TestNoWay(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.A, "link add dum0 type bridge", "link set dum0 up", "addr add 10.80.0.1/24 dev dum0",
		"addr add fd00:80::1/64 dev dum0 nodad", "route add blackhole 10.81.0.0/24", "route add unreachable fd00:81::/64")
	r := resolver(t, p.A)
	testnet.Eventually(t, "the kernel takes an IPv6 address for its own, which it does behind the command that adds it", func() bool {
		got, err := r.lookup(addr("fd00:80::1"), nil)
		return err == nil && got.Type == unix.RTN_LOCAL
	})
	for _, c := range []struct {
		dst  string
		want []string
	}{
		{"10.80.0.2", []string{"would use dum0"}},
		{"fd00:80::2", []string{"would use dum0"}},
		{"10.80.0.1", []string{"another interface of this node"}},
		{"fd00:80::1", []string{"another interface of this node"}},
		{"192.0.2.1", []string{"knows none at all", "ip route add"}},
		{"2001:db8::1", []string{"knows none at all"}},
		{"10.81.0.1", nil},
		{"fd00:81::1", nil},
		{"10.77.0.255", []string{"not the address of one node"}},
		{"0.0.0.0", []string{"one node"}},
		{"224.0.0.1", []string{"one node"}},
		{"ff02::1", []string{"one node"}},
	} {
		_, err := r.Resolve(t.Context(), addr(c.dst))
		if !errors.Is(err, ErrNoRoute) {
			t.Errorf("%s: %v, want ErrNoRoute", c.dst, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.dst, err, w)
			}
		}
	}
	if _, err := r.Resolve(t.Context(), netip.Addr{}); !errors.Is(err, ErrNoRoute) {
		t.Errorf("no address at all: %v", err)
	}
}

func TestNoSource(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.A, "addr add 10.80.0.1/32 dev lo", "addr del 10.77.0.1/24 dev veth0", "route add 10.77.0.0/24 dev veth0")
	_, err := resolver(t, p.A).Resolve(t.Context(), p.B.IP4)
	if !errors.Is(err, ErrNoSource) || !strings.Contains(err.Error(), "ip addr add") {
		t.Errorf("got %v", err)
	}
}

func TestSilentNeighbour(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A)
	// The second time the kernel's entry says so already, but the kernel asks
	// again.
	var wg sync.WaitGroup
	for _, dst := range []string{"10.77.0.9", "fd00:77::9"} {
		wg.Go(func() {
			for range 2 {
				_, err := r.Resolve(t.Context(), addr(dst))
				if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "ip neigh show "+dst+" dev veth0") {
					t.Errorf("%s: %v", dst, err)
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Resolve(ctx, addr("10.77.0.10")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("context ends first: %v", err)
	}
	// The neighbour comes up during the wait. On a machine where ip(8) takes longer
	// than the kernel waits for an answer, the kernel is made to ask again.
	done := make(chan error, 1)
	go func() {
		_, err := r.Resolve(context.Background(), addr("10.77.0.11"))
		done <- err
	}()
	testnet.Blocked(t, 1, "route.(*Resolver).Resolve")
	testnet.IP(t, p.B, "addr add 10.77.0.11/24 dev veth0")
	err := <-done
	testnet.Eventually(t, "the neighbour that came up is found", func() bool {
		if errors.Is(err, ErrUnreachable) {
			_, err = r.Resolve(context.Background(), addr("10.77.0.11"))
		}
		return !errors.Is(err, ErrUnreachable)
	})
	if err != nil {
		t.Errorf("neighbour that came up: %v", err)
	}
}

// An old entry is verified before it is used: the peer may have another MAC now.
func TestDoubtfulNeighbour(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A)
	for _, dst := range []string{"10.77.0.2", "fd00:77::2"} {
		for _, state := range []string{"stale", "delay", "probe", "failed", "none"} {
			lladdr := "lladdr 02:00:00:00:00:99 "
			if state == "failed" || state == "none" {
				lladdr = ""
			}
			testnet.IP(t, p.A, "neigh replace "+dst+" dev veth0 "+lladdr+"nud "+state)
			hop, err := r.Resolve(t.Context(), addr(dst))
			if err != nil || hop.MAC != wire.MAC(p.B.MAC) {
				t.Errorf("%s %s: %+v, %v; want %v", dst, state, hop, err, p.B.MAC)
			}
		}
		testnet.IP(t, p.A, "neigh replace "+dst+" dev veth0 lladdr 02:00:00:00:00:98 nud permanent")
		if hop := resolve(t, r, dst); hop.MAC != (wire.MAC{2, 0, 0, 0, 0, 0x98}) {
			t.Errorf("%s permanent: %+v", dst, hop)
		}
	}
}

// A neighbour that asks for this node at the moment when this node asks for it, as the
// programs of a job do that begin together, has told its address by that.
func TestNeighbourThatAsks(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	here, there := resolver(t, p.A), resolver(t, p.B)
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped }()
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if err := there.Ask(p.A.IP4); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	unknown := netlink.Neigh{LinkIndex: p.A.IfIndex, Family: netlink.FAMILY_V4, IP: p.B.IP4.AsSlice()}
	for i := range 200 {
		if err := here.handle.NeighDel(&unknown); err != nil && !errors.Is(err, unix.ENOENT) {
			t.Fatal(err)
		}
		hop, err := here.Resolve(t.Context(), p.B.IP4)
		if err != nil || hop.MAC != wire.MAC(p.B.MAC) {
			t.Fatalf("the %d. time: %+v, %v; want %v", i+1, hop, err, p.B.MAC)
		}
	}
}

// The resolver stays in its namespace, wherever it is called from.
func TestNamespace(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A)
	err := p.B.Do(func() error {
		hop, err := r.Resolve(context.Background(), p.B.IP4)
		if err == nil && hop.Source != p.A.IP4 {
			t.Errorf("from the other namespace: %+v", hop)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	fds := func() int { list, _ := os.ReadDir("/proc/self/fd"); return len(list) }
	before := fds()
	r := resolver(t, p.A)
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := r.Resolve(context.Background(), addr("10.77.0.9"))
			done <- err
		}()
	}
	testnet.Blocked(t, 4, "route.(*Resolver).Resolve")
	r.Close()
	r.Close()
	for range 4 {
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("Resolve during Close: %v", err)
		}
	}
	if after := fds(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	err := p.A.Do(func() error { _, err := New(9999, 0); return err })
	if err == nil || fds() > before {
		t.Errorf("an interface that is not there: %v, %d descriptors, want %d", err, fds(), before)
	}
	if _, err := r.Addrs(); !errors.Is(err, ErrClosed) {
		t.Errorf("Addrs after Close: %v", err)
	}
}

func TestInterfaceRemoved(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A)
	testnet.IP(t, p.A, "link del veth0")
	if hop, err := r.Resolve(t.Context(), p.B.IP4); err == nil {
		t.Errorf("got %+v", hop)
	}
}

// A tunnel has an IP address where Ethernet has a MAC address.
func TestNotEthernet(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	if out, err := p.A.Command("ip", strings.Fields("link add tun9 type ipip local 10.77.0.1 remote 10.77.0.2")...).CombinedOutput(); err != nil {
		if s := string(out); !strings.Contains(s, "Unknown device type") && !strings.Contains(s, "not supported") {
			t.Fatalf("ipip tunnel: %v: %s", err, s)
		}
		t.Skipf("this kernel has no ipip tunnels: %s", out)
	}
	err := p.A.Do(func() error {
		i, err := net.InterfaceByName("tun9")
		if err == nil {
			_, err = New(i.Index, 0)
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "Ethernet MAC") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkKnownNeighbour(b *testing.B) {
	p := testnet.NewPair(b, testnet.Options{})
	r := resolver(b, p.A)
	for b.Loop() {
		resolve(b, r, "10.77.0.2")
	}
}
