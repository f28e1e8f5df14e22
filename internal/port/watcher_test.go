// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// record keeps the events that it is told, in order.
type record[T any] struct {
	mu    sync.Mutex
	got   []T
	taken int // by await
}

func (r *record[T]) add(v T) {
	r.mu.Lock()
	r.got = append(r.got, v)
	r.mu.Unlock()
}

// await waits for the next event that is wanted, and skips those before it.
func (r *record[T]) await(t testing.TB, what string, wanted func(T) bool) T {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		for r.taken < len(r.got) {
			v := r.got[r.taken]
			r.taken++
			if wanted(v) {
				r.mu.Unlock()
				return v
			}
		}
		got := slices.Clone(r.got)
		r.mu.Unlock()
		if time.Now().After(end) {
			t.Fatalf("%s did not come; got %+v", what, got)
		}
	}
}

// all returns the events told so far.
func (r *record[T]) all() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

type events struct{ record[Event] }

// watched follows an interface from now on.
func watched(t testing.TB, n *node) *events {
	e := &events{}
	n.Watch(e.add)
	return e
}

func (e *events) awaitKind(t testing.TB, k EventKind) Event {
	t.Helper()
	return e.await(t, k.String(), func(e Event) bool { return e.Kind == k })
}

// packetFor returns a valid frame for a link.
func packetFor(t testing.TB, l wire.Link) []byte {
	t.Helper()
	tpl, err := wire.NewTemplate(l)
	if err != nil {
		t.Fatal(err)
	}
	s := stream{tpl: tpl, session: uint32(wire.NewSessionID(lane, 0, 7, 3)), maxFrame: 200}
	b := make([]byte, 1500)
	return b[:s.put(b, 1)]
}

// sendOver sends one frame, and tells whether the other side's program has accepted it
// (true) or passed it to the kernel because of its address. The frame is sent until
// one of the two happens.
func sendOver(t testing.TB, from, to *node, l wire.Link) bool {
	t.Helper()
	packet := packetFor(t, l)
	before := to.counters(t)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		q := from.Queues()[0]
		if b := q.Buffer(); b != nil {
			q.Send(copy(b, packet))
		}
		if err := q.Flush(); err != nil {
			t.Fatal(err)
		}
		now := to.counters(t)
		switch {
		case now["xdp_redirect"] > before["xdp_redirect"]:
			return true
		case now["xdp_pass_addr"] > before["xdp_pass_addr"]:
			return false
		}
	}
	t.Fatalf("nothing arrived over %+v", l)
	return false
}

func arrives(t testing.TB, from, to *node, l wire.Link) {
	t.Helper()
	if !sendOver(t, from, to, l) {
		t.Errorf("a frame to %v is not taken", l.RemoteIP)
	}
}

// Addresses are served, or not, from the moment of their change on.
func TestAddressesComeAndGo(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.B, "addr flush dev veth0") // as at boot, before DHCP
	a, b := open(t, p.A, Options{RingSize: 64, UDP: true}), open(t, p.B, Options{RingSize: 64, UDP: true})
	told := watched(t, b)
	for _, text := range []string{"10.77.0.2/24", "10.77.0.9/24", "fd00:77::9/64"} {
		ip := netip.MustParsePrefix(text).Addr()
		over := wire.Link{Kind: wire.UDP4, Local: a.MAC(), Remote: b.MAC(), LocalIP: p.A.IP4, RemoteIP: ip}
		if ip.Is6() {
			over.Kind, over.LocalIP = wire.UDP6, p.A.IP6
		}
		if sendOver(t, a, b, over) {
			t.Errorf("a frame to %v is taken before the address is there", ip)
		}
		testnet.IP(t, p.B, "addr add "+text+" dev veth0")
		told.await(t, "the new address", func(e Event) bool { return e.Kind == AddressAdded && e.To == ip.String() })
		arrives(t, a, b, over)
		testnet.IP(t, p.B, "addr del "+text+" dev veth0")
		told.await(t, "the address's end", func(e Event) bool { return e.Kind == AddressRemoved && e.From == ip.String() })
		if sendOver(t, a, b, over) {
			t.Errorf("a frame to %v is taken after the address has gone", ip)
		}
	}
}

// The end of the last address that other networks reach is told; the kernel's link-local
// one does not count.
func TestLastAddressRemoved(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	b := open(t, p.B, Options{RingSize: 64, UDP: true})
	told := watched(t, b)
	testnet.IP(t, p.B, "addr add 10.77.0.9/24 dev veth0")
	told.await(t, "the new address", func(e Event) bool { return e.Kind == AddressAdded && e.To == "10.77.0.9" })
	testnet.IP(t, p.B, "addr add fe80::9/64 dev veth0", "addr del 10.77.0.9/24 dev veth0")
	told.await(t, "one address less", func(e Event) bool {
		if e.Kind == Unaddressed {
			t.Error("others are left")
		}
		return e.Kind == AddressRemoved
	})
	testnet.IP(t, p.B, "addr del "+p.B.IP4.String()+"/24 dev veth0", "addr del "+p.B.IP6.String()+"/64 dev veth0")
	told.await(t, "the end of all", func(e Event) bool { return e.Kind == Unaddressed })
}

// An interface that is down has a reason.
func TestDownHasReason(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	told := watched(t, open(t, p.B, Options{RingSize: 64}))
	testnet.IP(t, p.A, "link set veth0 down")
	told.await(t, "no carrier", func(e Event) bool { return e.Kind == Down && e.To == "it has no carrier" })
	testnet.IP(t, p.B, "link set veth0 down")
	told.await(t, "set down", func(e Event) bool { return e.Kind == Down && e.To == "it was set down" })
}

// follow follows one address, from the link that Link finds.
func follow(t testing.TB, n *node, to netip.Addr) (links *record[wire.Link], first wire.Link, stop func()) {
	t.Helper()
	addr := wire.Addr{IP: to}
	first, err := n.Link(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	links = &record[wire.Link]{}
	return links, first, n.Follow(addr, first, links.add)
}

func mac(t testing.TB, text string) wire.MAC {
	m, err := net.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	return wire.MAC(m)
}

// An interface that had no carrier when it was opened is known to be down as soon as it
// is watched: nobody who asks then takes it for one that works.
func TestDownFromTheBeginning(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{}) // of which one side takes the other's carrier away
	configure(t, p.B, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetDown(l) })
	a := open(t, p.A, Options{RingSize: 32})
	told := watched(t, a)
	if got := told.all(); len(got) == 0 || got[0].Kind != Down {
		t.Errorf("told by the time that Watch returned: %+v, want that it is down", got)
	}
	configure(t, p.B, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetUp(l) })
	told.awaitKind(t, Up)
	if n := len(slices.DeleteFunc(told.all(), func(e Event) bool { return e.Kind != Down })); n != 1 {
		t.Errorf("told %d times that it is down, want once", n)
	}
}

// A change that an interface survives is only told; one that it does not survive
// ends its use.
func TestInterfaceChanges(t *testing.T) {
	run := func(command string) func(testing.TB, *node, *events) {
		return func(t testing.TB, a *node, _ *events) { testnet.IP(t, a.side, command) }
	}
	for _, c := range []struct {
		name   string
		change func(testing.TB, *node, *events) // a passing state has to be seen before it passes
		want   EventKind
		end    string
	}{
		{"MTU raised and put back", func(t testing.TB, a *node, told *events) {
			testnet.IP(t, a.side, "link set veth0 mtu 1501")
			told.awaitKind(t, MTUChanged)
			testnet.IP(t, a.side, "link set veth0 mtu 1500")
		}, MTUChanged, ""},
		{"MTU lowered", run("link set veth0 mtu 1400"), MTULowered, "opened with an MTU of 1500 bytes and has 1400"},
		{"renamed", func(t testing.TB, a *node, told *events) {
			testnet.IP(t, a.side, "link set veth0 down")
			told.awaitKind(t, Down)
			testnet.IP(t, a.side, "link set veth0 name lan7", "link set lan7 up")
		}, Up, ""},
		{"another MAC", run("link set veth0 address 02:11:22:33:44:55"), MACChanged, "to 02:11:22:33:44:55"},
		{"deleted", run("link del veth0"), Gone, "is gone"},
		{"re-created", func(t testing.TB, a *node, _ *events) {
			testnet.IP(t, a.side, "link del veth0", fmt.Sprintf("link add veth0 index %d address %s type bridge", a.Index(), a.side.MAC), "link set veth0 up")
		}, Detached, "or the interface was replaced"},
		{"moved to another namespace", func(t testing.TB, a *node, _ *events) {
			testnet.IP(t, a.side, "link set veth0 down", "link set veth0 name moved0")
			elsewhere, side := testnet.NewVeth(t, testnet.Options{}), *a.side
			side.IfName = "moved0"
			configure(t, &side, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetNsFd(l, int(elsewhere.A.NS)) })
		}, Gone, "is gone"},
		{"link detached", detachLink, Detached, "detached"},
		{"program removed by netlink, which is refused", func(t testing.TB, a *node, told *events) {
			for _, mode := range []string{"xdp", "xdpdrv", "xdpgeneric"} {
				_ = a.side.Command("ip", "link", "set", "veth0", mode, "off").Run()
			}
			testnet.IP(t, a.side, "link set veth0 down")
			told.awaitKind(t, Down)
			testnet.IP(t, a.side, "link set veth0 up")
		}, Up, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pair := testnet.NewPair
			if c.want == Gone || c.name == "re-created" {
				pair = testnet.NewVeth // a NIC cannot be removed
			}
			p := pair(t, testnet.Options{})
			a := open(t, p.A, Options{RingSize: 32, UDP: true})
			told := watched(t, a)
			c.change(t, a, told)
			if c.end != "" {
				e := told.await(t, "the end", func(e Event) bool { return e.Err != nil })
				if e.Kind != c.want && !(c.name == "re-created" && e.Kind == Gone) {
					t.Errorf("%+v, want %v", e, c.want)
				}
				if !errors.Is(e.Err, ErrLost) || e.Kind == c.want && !strings.Contains(e.Err.Error(), c.end) {
					t.Errorf("cause %q, want %q", e.Err, c.end)
				}
				return
			}
			told.awaitKind(t, c.want)
			b := open(t, p.B, Options{RingSize: 32})
			arrives(t, b, a, wire.Link{Kind: wire.Ethernet, Local: b.MAC(), Remote: a.MAC()})
			for _, e := range told.all() {
				if e.Err != nil {
					t.Errorf("%+v", e)
				}
			}
			if c.name == "renamed" && a.Name() != "lan7" {
				t.Errorf("name %q", a.Name())
			}
		})
	}
}

// detachLink does what `bpftool link detach` does. A link that another process is making
// hides those behind it for a moment.
func detachLink(t testing.TB, a *node, _ *events) {
	testnet.Eventually(t, "the link is found", func() bool {
		it := new(link.Iterator)
		defer it.Close()
		for it.Next() {
			info, err := it.Link.Info()
			if err != nil || info.XDP() == nil || int(info.XDP().Ifindex) != a.Index() || uint32(info.Program) != a.program.ID() {
				continue
			}
			if err := it.Link.Detach(); err != nil {
				t.Fatal(err)
			}
			return true
		}
		return false
	})
}

// Closing ends the watcher, even during changes, and no call comes after it.
func TestCloseWhileThingsChange(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	n, err := tryOpen(p.A, Options{RingSize: 32, UDP: true})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	closed := false
	n.Watch(func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if closed {
			t.Errorf("%+v after Close", e)
		}
	})
	stop := make(chan struct{})
	var changing sync.WaitGroup
	h, err := netlink.NewHandleAt(p.A.NS, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.LinkByName(p.A.IfName)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := netlink.ParseAddr("10.77.0.99/32")
	started := make(chan struct{})
	changing.Go(func() {
		for n := 0; ; n++ {
			_ = h.AddrAdd(l, addr)
			_ = h.AddrDel(l, addr)
			if n == 10 {
				close(started)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	<-started
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	closed = true
	mu.Unlock()
	n.Silent(p.B.IP4)
	close(stop)
	changing.Wait()
}
