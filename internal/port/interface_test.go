// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// refused checks an error of Open: that it is the expected one, and that it
// names the remedy.
func refused(t testing.TB, err, want error, words ...string) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// clean checks that no XDP program is on the side's interface.
func clean(t testing.TB, side *testnet.Side) {
	t.Helper()
	if id := attached(t, side); id != 0 {
		t.Errorf("XDP program %d is on the interface", id)
	}
}

func attached(t testing.TB, side *testnet.Side) (id uint32) {
	t.Helper()
	configure(t, side, func(_ *netlink.Handle, l netlink.Link) error {
		if x := l.Attrs().Xdp; x != nil && x.Attached {
			id = x.ProgId
		}
		return nil
	})
	return id
}

// onlyOpenKnows are the refusals because of the options, and those of the kernel.
var onlyOpenKnows = map[string]bool{"too many queues": true, "negative queues": true, "ring size": true, "chunks": true,
	"zero-copy": true, "busy polling": true, "busy polling, and no file": true,
	"missing": true, "MTU too large for veth": true}

// toldBefore checks that a caller that asks about an interface, as `xdpfab info`
// does, gets the same answer as from Open.
func toldBefore(t testing.TB, side *testnet.Side, words ...string) {
	t.Helper()
	var plan nic.Plan
	err := side.Do(func() error {
		machine, err := nic.Machine()
		if err != nil {
			return err
		}
		i, err := nic.Inspect(side.IfName)
		plan = machine.Plan(&i, nic.Want{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(plan.Problems, "\n")
	for _, w := range words {
		if plan.Usable || !strings.Contains(problems, w) {
			t.Errorf("usable: %v, problems %q; want %q", plan.Usable, problems, w)
		}
	}
}

// More queues are asked for than a session id can name, and the interface has fewer to
// send than to receive.
func TestUnsuitableQueues(t *testing.T) {
	for _, c := range []struct {
		rx, tx int
		o      Options
		want   error
		words  []string
	}{
		{65, 65, Options{Queues: 65}, xsk.ErrNoQueue, []string{"has 65 queues, at most 64 can be used", "rx 64 tx 64"}},
		{2, 1, Options{}, nil, []string{"2 receive queues and 1 transmit queues", "rx 1 tx 1"}},
	} {
		p := testnet.NewVeth(t, testnet.Options{})
		side := *p.A
		side.IfName = "odd0"
		configure(t, p.A, func(h *netlink.Handle, _ netlink.Link) error {
			d := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "odd1"}
			d.Name, d.NumRxQueues, d.NumTxQueues = side.IfName, c.rx, c.tx
			return errors.Join(h.LinkAdd(d), h.LinkSetUp(d))
		})
		_, err := tryOpen(&side, c.o)
		refused(t, err, c.want, c.words...)
		if c.o.Queues == 0 {
			toldBefore(t, &side, c.words...)
		}
	}
}

func TestUnusableInterfaces(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{Queues: 2})
	mtu := func(n int) func(*netlink.Handle, netlink.Link) error {
		return func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetMTU(l, n) }
	}
	// A veth looks at the MTU of its peer, which bounds the packets that will
	// arrive.
	peerMTU := func(n int) func(*netlink.Handle, netlink.Link) error {
		return func(h *netlink.Handle, l netlink.Link) error {
			configure(t, p.B, mtu(n))
			return mtu(1500)(h, l)
		}
	}
	most := "65518"
	if v := kernel.MultiBuffer; testnet.KernelBefore(t, v.Major, v.Minor) {
		most = "3498" // what fits into one buffer of a veth
	}
	for _, c := range []struct {
		name    string
		ifname  string
		prepare func(*netlink.Handle, netlink.Link) error
		o       Options
		want    error
		words   []string
	}{
		{"missing", "nosuch0", nil, Options{}, xsk.ErrNoInterface, []string{"nosuch0", "ip link"}},
		{"loopback", "lo", nil, Options{}, nil, []string{"not an Ethernet interface"}},
		{"too many queues", "", nil, Options{Queues: 3}, xsk.ErrNoQueue, []string{"has 2 queues", "ethtool -l veth0"}},
		{"negative queues", "", nil, Options{Queues: -1}, nil, []string{"-1 queues"}},
		{"ring size", "", nil, Options{RingSize: 100}, nil, []string{"power of two"}},
		{"chunks", "", nil, Options{RingSize: 64, Chunks: 257}, nil, []string{"64 to 256"}},
		{"zero-copy", "", nil, Options{Copy: xsk.ZeroCopy}, xsk.ErrZeroCopy, []string{"queue 0", "auto or copy"}},
		{"busy polling", "", nil, Options{BusyPoll: xsk.BusyPoll{Time: 1000}, Remember: "x"}, nil, []string{"veth"}},
		{"busy polling, and no file", "", nil, Options{BusyPoll: xsk.BusyPoll{Time: 1000}}, nil, []string{"want both"}},
		{"MTU too small", "", mtu(255), Options{}, ErrMTU, []string{"ip link set dev veth0 mtu"}},
		{"MTU too large", "", mtu(65519), Options{}, ErrMTU, []string{"ip link set dev veth0 mtu " + most}},
		{"MTU too large for veth", "", peerMTU(3822), Options{}, unix.ERANGE, []string{"ip link set dev", "mtu"}},
		{"down", "", func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetDown(l) },
			Options{}, xsk.ErrInterfaceDown, []string{"ip link set dev veth0 up"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			side := *p.A
			if c.prepare != nil {
				configure(t, &side, c.prepare)
			}
			if c.ifname != "" {
				side.IfName = c.ifname
			}
			n, err := tryOpen(&side, c.o)
			if err == nil {
				n.Close()
			}
			refused(t, err, c.want, c.words...)
			t.Log(err)
			clean(t, p.A)
			if !onlyOpenKnows[c.name] {
				toldBefore(t, &side, c.words...)
			}
		})
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	a := open(t, p.A, Options{RingSize: 32})
	before := attached(t, p.A)
	_, err := tryOpen(p.A, Options{RingSize: 32})
	refused(t, err, bpf.ErrBusy, "another xdpfab")
	toldBefore(t, p.A, "another xdpfab")
	t.Log(err)
	if after := attached(t, p.A); after != before || a.program.ID() != before {
		t.Errorf("program %d was replaced by %d", before, after)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	clean(t, p.A)
	open(t, p.A, Options{RingSize: 32}) // at once, although the kernel takes its time to free a queue
}

func TestForeignProgramStays(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	const pass = 2
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "foreign", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, pass), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	var l link.Link
	err = p.A.Do(func() (err error) {
		l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: p.A.IfIndex, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := attached(t, p.A)
	_, err = tryOpen(p.A, Options{RingSize: 32})
	refused(t, err, bpf.ErrBusy, "foreign", "bpftool link show")
	toldBefore(t, p.A, "foreign", "bpftool link show")
	t.Log(err)
	if after := attached(t, p.A); after != before || before == 0 {
		t.Errorf("program %d was replaced by %d", before, after)
	}
}

// Another AF_XDP socket that has no XDP program is noticed because it occupies the
// queue. The program that was attached by then is detached again.
func TestQueueTaken(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2})
	u, err := xsk.NewUMEM(xsk.UMEMConfig{Chunks: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var s *xsk.Socket
	err = p.A.Do(func() (err error) {
		s, err = xsk.Open(xsk.Config{UMEM: u, IfIndex: p.A.IfIndex, Queue: 1})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = tryOpen(p.A, Options{RingSize: 32, patience: -1})
	refused(t, err, xsk.ErrQueueBusy, "queue 1")
	clean(t, p.A)
	open(t, p.A, Options{RingSize: 32, Queues: 1})
}

// A bridge has no native XDP.
func TestGenericHasToBeAllowed(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	configure(t, p.A, func(h *netlink.Handle, _ netlink.Link) error {
		d := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
		d.Name = "br0"
		return errors.Join(h.LinkAdd(d), h.LinkSetUp(d))
	})
	side := *p.A
	side.IfName = "br0"
	_, err := tryOpen(&side, Options{RingSize: 32})
	refused(t, err, bpf.ErrNoNative, "--xdp generic")
	n := open(t, &side, Options{RingSize: 32, XDP: bpf.Any})
	if m := n.Modes(); m.XDP != bpf.Generic || m.Copy != xsk.Copy {
		t.Errorf("modes %+v", m)
	}
}

func TestReport(t *testing.T) {
	a, b := openPair(t, testnet.Options{Queues: 3, MTU: 1400, Straight: true}, Options{Queues: 2, UDP: true})
	if a.Name() != "veth0" || a.Index() != a.side.IfIndex || a.MAC() != wire.MAC(a.side.MAC) || a.MTU() != 1400 ||
		a.Driver() != "veth" || !a.UDP() || len(a.Queues()) != 2 {
		t.Errorf("%+v", a.Interface)
	}
	if m := a.Modes(); m.XDP != bpf.Native || m.Copy != xsk.Copy || m.Pages > xsk.PagesHuge {
		t.Errorf("modes %+v", m)
	}
	ctx := context.Background()
	for _, k := range kinds {
		got, err := a.Link(ctx, b.addr(k))
		want := wire.Link{Kind: k, Local: a.MAC(), Remote: b.MAC()}
		switch k {
		case wire.UDP4:
			want.LocalIP, want.RemoteIP = a.side.IP4, b.side.IP4
		case wire.UDP6:
			want.LocalIP, want.RemoteIP = a.side.IP6, b.side.IP6
		}
		if err != nil || got != want {
			t.Errorf("%v: link %+v, %v; want %+v", k, got, err, want)
		}
	}
	if l, err := a.Link(ctx, wire.Addr{IP: a.side.IP4}); err != nil || l.Remote != a.MAC() {
		t.Errorf("own address: %+v, %v", l, err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := a.Link(canceled, wire.Addr{IP: b.side.IP4.Next()}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// With the next hop's address, the way to a node is found although the next hop does not
// answer, if there is one.
func TestLinkBy(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.A, "route add 10.90.0.0/16 via 10.77.0.99")
	a, next := open(t, p.A, Options{RingSize: 32, UDP: true}), wire.MAC{2, 0, 0, 0, 0, 0x99}
	for _, ip := range []netip.Addr{netip.MustParseAddr("10.77.0.99"), netip.MustParseAddr("10.90.1.1")} {
		want := wire.Link{Kind: wire.UDP4, Local: a.MAC(), Remote: next, LocalIP: p.A.IP4, RemoteIP: ip}
		if got, err := a.LinkBy(wire.Addr{IP: ip}, next); err != nil || got != want {
			t.Errorf("%v: %+v, %v, want %+v", ip, got, err, want)
		}
	}
	if l, err := a.LinkBy(wire.Addr{IP: p.A.IP4}, next); err != nil || l.Remote != a.MAC() {
		t.Errorf("own address: %+v, %v", l, err)
	}
	_, err := a.LinkBy(wire.Addr{IP: netip.MustParseAddr("192.0.2.1")}, next)
	refused(t, err, ErrNoRoute)
	b := open(t, p.B, Options{RingSize: 32})
	_, err = b.LinkBy(wire.Addr{IP: p.A.IP4}, next)
	refused(t, err, ErrNoUDP)
}

func TestLinkNeedsUDP(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	a := open(t, p.A, Options{RingSize: 32})
	_, err := a.Link(t.Context(), wire.Addr{IP: p.B.IP4})
	refused(t, err, ErrNoUDP, "--udp=false")
	b := open(t, p.B, Options{RingSize: 32, UDP: true})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = b.Link(t.Context(), wire.Addr{IP: p.A.IP4})
	refused(t, err, ErrClosed)
}

// An address that was added later is served before the first frame is sent from it,
// even if the interface is not watched.
func TestLaterAddress(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	a := open(t, p.A, Options{RingSize: 32, UDP: true})
	b := open(t, p.B, Options{RingSize: 32, UDP: true})
	for side, text := range map[*testnet.Side]string{p.A: "10.78.0.1/24", p.B: "10.78.0.2/24"} {
		configure(t, side, func(h *netlink.Handle, l netlink.Link) error {
			addr, err := netlink.ParseAddr(text)
			return errors.Join(err, h.AddrAdd(l, addr))
		})
	}
	to, _ := wire.ParseAddr("10.78.0.2")
	l, err := a.Link(t.Context(), to)
	if err != nil || l.LocalIP.String() != "10.78.0.1" {
		t.Fatalf("%+v, %v", l, err)
	}
	back, _ := wire.ParseAddr("10.78.0.1")
	if l, err = b.Link(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	arrives(t, b, a, l)
}

// The way to a peer costs no look at the addresses if its source is served already: many
// programs that ask for many peers would have the daemon read them thousands of times.
func TestServedSourceIsNotReadAgain(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.A, "addr add 10.78.0.1/24 dev veth0")
	a, gone := open(t, p.A, Options{RingSize: 32, UDP: true}), netip.MustParseAddr("10.78.0.1")
	testnet.IP(t, p.A, "addr del 10.78.0.1/24 dev veth0")
	to, from := wire.Addr{IP: p.B.IP4}, func(source netip.Addr) route.Hop {
		return route.Hop{MAC: wire.MAC(p.B.MAC), Source: source}
	}
	if _, err := a.serve(); err != nil {
		t.Fatal(err)
	}
	a.resolver.Close() // from here on the kernel cannot be asked
	if l, err := a.linkOver(to, from(p.A.IP4), nil); err != nil || l.LocalIP != p.A.IP4 {
		t.Errorf("from an address that is served: %+v, %v", l, err)
	}
	for _, source := range []netip.Addr{gone, netip.MustParseAddr("10.79.0.1")} {
		if l, err := a.linkOver(to, from(source), nil); !errors.Is(err, route.ErrClosed) {
			t.Errorf("from %v, which is not served: %+v, %v, want %v", source, l, err, route.ErrClosed)
		}
	}
}
