// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// nics makes a namespace with two interfaces that are joined to each other, as on a
// machine with two NICs.
func nics(t *testing.T, queues int) (home *Side, h *netlink.Handle) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	p, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if h, err = netlink.NewHandleAt(p.A.NS, unix.NETLINK_ROUTE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	v := netlink.NewVeth(netlink.NewLinkAttrs())
	v.Name, v.PeerName, v.MTU = "nic0", "nic1", 1400
	v.NumTxQueues, v.NumRxQueues = queues, queues
	v.PeerNumTxQueues, v.PeerNumRxQueues = uint32(queues), uint32(queues)
	if err := h.LinkAdd(v); err != nil {
		t.Fatal(err)
	}
	return p.A, h
}

func borrow(home *Side, o Options) (p *Pair, err error) {
	e := home.Do(func() error {
		p, err = Borrow([2]string{"nic0", "nic1"}, o)
		return nil
	})
	return p, errors.Join(err, e)
}

// Two NICs become a pair that carries traffic, and are given back as they were.
func TestBorrow(t *testing.T) {
	home, h := nics(t, 1)
	before, err := h.LinkByName("nic1")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p, err := borrow(home, Options{MTU: 1300})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := borrow(home, Options{}); !errors.Is(err, ErrOnePair) {
			t.Errorf("a second pair: %v", err)
		}
		if _, err := h.LinkByName("nic0"); err == nil {
			t.Error("the NIC is where it was")
		}
		if err := p.B.Do(func() error {
			i, err := net.InterfaceByName(IfName)
			if err == nil && (i.MTU != 1300 || i.Index != p.B.IfIndex || i.HardwareAddr.String() != p.B.MAC.String()) {
				t.Errorf("%+v", i)
			}
			return errors.Join(err, netlink.LinkSetMTU(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: p.B.IfIndex}}, 1350))
		}); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		now, err := h.LinkByName("nic1")
		if err != nil {
			t.Fatal(err)
		}
		if a, was := now.Attrs(), before.Attrs(); a.MTU != was.MTU || a.HardwareAddr.String() != was.HardwareAddr.String() || a.Flags&net.FlagUp != 0 {
			t.Errorf("given back with MTU %d, MAC %v, flags %v; was %d, %v, down", a.MTU, a.HardwareAddr, a.Flags, was.MTU, was.HardwareAddr)
		}
	}
}

// A pair has as many queues as it asks for, of NICs with more, or it is refused.
func TestBorrowQueues(t *testing.T) {
	home, h := nics(t, 3)
	if n := queues(t, home, h); n != 3 {
		t.Fatalf("%d queues, want 3", n)
	}
	for _, n := range []int{1, 2} {
		p, err := borrow(home, Options{Queues: n})
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := queues(t, home, h); got != n {
			t.Errorf("%d queues, want %d", got, n)
		}
	}
	p, err := borrow(home, Options{Queues: 4})
	if err == nil {
		p.Close()
	}
	if !errors.Is(err, unix.EINVAL) {
		t.Errorf("4 queues of 3: %v, want a refusal", err)
	}
}

// queues returns how many queues nic0 receives from.
func queues(t *testing.T, home *Side, h *netlink.Handle) (n int) {
	t.Helper()
	l, err := h.LinkByName("nic0")
	if err != nil {
		t.Fatal(err)
	}
	var answer [][]byte
	err = home.Do(func() (err error) {
		answer, err = ask(l.Attrs().Index, ethtoolChannelsGet)
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("veth tells of its queues from Linux 5.13 on")
	} else if err != nil {
		t.Fatal(err)
	}
	for _, m := range answer {
		attrs, err := nl.ParseRouteAttr(m[nl.SizeofGenlmsg:])
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range attrs {
			if a.Attr.Type == channelsRX {
				return int(nl.NativeEndian().Uint32(a.Value))
			}
		}
	}
	t.Fatalf("no number of queues in %d answers", len(answer))
	return 0
}

// What the machine uses is left alone.
func TestBorrowRefuses(t *testing.T) {
	for name, use := range map[string]func(h *netlink.Handle, l netlink.Link) error{
		"an address": func(h *netlink.Handle, l netlink.Link) error {
			addr, _ := netlink.ParseAddr("192.0.2.1/24")
			return h.AddrAdd(l, addr)
		},
		"the default route": func(h *netlink.Handle, l netlink.Link) error {
			return errors.Join(h.LinkSetUp(l), h.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}, Scope: netlink.SCOPE_LINK}))
		},
		"a bridge": func(h *netlink.Handle, l netlink.Link) error {
			b := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
			b.Name = "br0"
			return errors.Join(h.LinkAdd(b), h.LinkSetMaster(l, b))
		},
	} {
		t.Run(name, func(t *testing.T) {
			home, h := nics(t, 1)
			l, err := h.LinkByName("nic1")
			if err != nil {
				t.Fatal(err)
			}
			if err := use(h, l); err != nil {
				t.Fatal(err)
			}
			p, err := borrow(home, Options{})
			if err == nil {
				p.Close()
			}
			if !errors.Is(err, ErrInUse) {
				t.Errorf("%v, want a refusal", err)
			}
			for _, name := range []string{"nic0", "nic1"} {
				if _, err := h.LinkByName(name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
