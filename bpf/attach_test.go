// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// loopback exists in every namespace and its driver has no native XDP.
const loopback = 1

// inPair runs a test on side B of a new pair, in its namespace.
func inPair(t *testing.T, o testnet.Options, f func(pair *testnet.Pair, cfg Config)) {
	t.Helper()
	pair := testnet.NewPair(t, o)
	cfg := Config{MAC: [6]byte(pair.B.MAC), UDP: true, Addrs: []netip.Addr{pair.B.IP4, pair.B.IP6}}
	if err := pair.B.Do(func() error { f(pair, cfg); return nil }); err != nil {
		t.Fatal(err)
	}
}

// wantXDP asks netlink, by another library than the package's own query, which
// program an interface runs and how; program 0 means none.
func wantXDP(t *testing.T, ifindex int, program uint32, mode uint32) {
	t.Helper()
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		t.Fatal(err)
	}
	x := l.Attrs().Xdp
	if x == nil {
		x = &netlink.LinkXdp{}
	}
	if x.ProgId != program || x.AttachMode != mode {
		t.Errorf("interface %d has program %d in mode %d, want %d in mode %d",
			ifindex, x.ProgId, x.AttachMode, program, mode)
	}
}

func TestAttachModes(t *testing.T) {
	inPair(t, testnet.Options{Queues: 2}, func(pair *testnet.Pair, cfg Config) {
		for _, c := range []struct {
			name    string
			ifindex int
			mode    Mode
			want    Mode
			kernel  uint32
			err     error
		}{
			{"auto takes native", pair.B.IfIndex, Auto, Native, nl.XDP_ATTACHED_DRV, nil},
			{"any prefers native", pair.B.IfIndex, Any, Native, nl.XDP_ATTACHED_DRV, nil},
			{"native", pair.B.IfIndex, Native, Native, nl.XDP_ATTACHED_DRV, nil},
			{"generic on request", pair.B.IfIndex, Generic, Generic, nl.XDP_ATTACHED_SKB, nil},
			{"auto does not settle for generic", loopback, Auto, Detached, 0, ErrNoNative},
			{"any falls back", loopback, Any, Generic, nl.XDP_ATTACHED_SKB, nil},
			{"native never falls back", loopback, Native, Detached, 0, ErrNoNative},
		} {
			p := mustLoad(t, cfg, 2)
			if err := p.Attach(c.ifindex, c.mode); !errors.Is(err, c.err) {
				t.Fatalf("%s: got error %v, want %v", c.name, err, c.err)
			}
			if got := p.Mode(); got != c.want {
				t.Errorf("%s: mode %v, want %v", c.name, got, c.want)
			}
			if c.err == nil {
				wantXDP(t, c.ifindex, p.ID(), c.kernel)
			}
			for range 2 { // Close is idempotent
				if err := p.Close(); err != nil {
					t.Errorf("%s: Close: %v", c.name, err)
				}
			}
			if got := p.Mode(); got != Detached {
				t.Errorf("%s: mode %v after Close", c.name, got)
			}
			wantXDP(t, c.ifindex, 0, nl.XDP_ATTACHED_NONE)
		}
	})
}

// Close detaches at once, even if another process has the link open for a moment, as
// those do that look for the owner of a program.
func TestCloseDetachesBesideOnlookers(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		p := mustLoad(t, cfg, 1)
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Fatal(err)
		}
		onlooker, err := link.NewFromID(link.ID(linkOf(p.ID(), pair.B.IfIndex)))
		if err != nil {
			t.Fatal(err)
		}
		defer onlooker.Close()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		wantXDP(t, pair.B.IfIndex, 0, nl.XDP_ATTACHED_NONE)
	})
}

func TestRenew(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		p := mustLoad(t, cfg, 1)
		if err := p.Renew(pair.B.IfIndex); !errors.Is(err, errDetached) {
			t.Errorf("not attached yet: %v", err)
		}
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Fatal(err)
		}
		before := linkOf(p.ID(), pair.B.IfIndex)
		if err := p.Renew(pair.B.IfIndex); err != nil {
			t.Fatal(err)
		}
		wantXDP(t, pair.B.IfIndex, p.ID(), nl.XDP_ATTACHED_DRV)
		if now := linkOf(p.ID(), pair.B.IfIndex); now == before || now == 0 || p.Mode() != Native {
			t.Errorf("attached by link %d, was %d, in %v mode; want another link, native", now, before, p.Mode())
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Renew(pair.B.IfIndex); !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

func TestAttachRefuses(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		p := mustLoad(t, cfg, 1)
		for _, mode := range []Mode{Detached, Any + 1} {
			if err := p.Attach(pair.B.IfIndex, mode); err == nil {
				t.Errorf("attached in mode %v", mode)
			}
		}
		for _, ifindex := range []int{-1, 0, 9999} {
			if err := p.Attach(ifindex, Native); err == nil {
				t.Errorf("attached to interface %d", ifindex)
			}
		}
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Fatal(err)
		}
		if err := p.Attach(loopback, Generic); !errors.Is(err, ErrAttached) {
			t.Errorf("second Attach: %v, want %v", err, ErrAttached)
		}
	})
}

// A frame that the MTU of the interface does not fit into a page is the usual
// reason for a driver to refuse.
func TestAttachMTU(t *testing.T) {
	inPair(t, testnet.Options{MTU: 9000}, func(pair *testnet.Pair, cfg Config) {
		err := mustLoad(t, cfg, 1).Attach(pair.B.IfIndex, Any) // which must not hide the refusal
		if err == nil || errors.Is(err, ErrNoNative) || !strings.Contains(err.Error(), "MTU") {
			t.Errorf("MTU 9000: got %v, want an error that speaks of the MTU", err)
		}
	})
}

func TestBusy(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		other, p := mustLoad(t, cfg, 1), mustLoad(t, cfg, 1)
		dev, err := netlink.LinkByIndex(pair.B.IfIndex)
		if err != nil {
			t.Fatal(err)
		}
		fd := other.objects.XdpfabSteer.FD()
		legacy := func(flags int) func() error {
			return func() error { return netlink.LinkSetXdpFdWithFlags(dev, fd, flags) }
		}
		for _, c := range []struct {
			name    string
			attach  func() error
			held    Mode
			try     Mode
			linked  bool
			advice  string
			restore func() error
		}{
			{"netlink, native", legacy(unix.XDP_FLAGS_DRV_MODE), Native, Native, false,
				"ip link set dev veth0 xdpdrv off", pair.B.Command("ip", "link", "set", "dev", "veth0", "xdpdrv", "off").Run},
			{"netlink, generic", legacy(unix.XDP_FLAGS_SKB_MODE), Generic, Auto, false,
				"ip link set dev veth0 xdpgeneric off", pair.B.Command("ip", "link", "set", "dev", "veth0", "xdpgeneric", "off").Run},
			{"bpf_link", func() error { return other.Attach(pair.B.IfIndex, Native) }, Native, Generic, true,
				"bpftool link show id", other.Close},
		} {
			if err := c.attach(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			err := p.Attach(pair.B.IfIndex, c.try)
			var b *BusyError
			if !errors.As(err, &b) || !errors.Is(err, ErrBusy) || !errors.Is(err, unix.EBUSY) {
				t.Fatalf("%s: got %v, want a BusyError", c.name, err)
			}
			if b.Interface != "veth0" || b.ProgramID != other.ID() || b.Name != "xdpfab_steer" ||
				b.Mode != c.held || (b.LinkID != 0) != c.linked {
				t.Errorf("%s: got %+v, want program %d in mode %v", c.name, b, other.ID(), c.held)
			}
			if !strings.Contains(err.Error(), c.advice) {
				t.Errorf("%s: %q does not advise %q", c.name, err, c.advice)
			}
			if got := p.Mode(); got != Detached {
				t.Errorf("%s: refused, but mode %v", c.name, got)
			}
			// The advice of the error works.
			if err := c.restore(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			wantXDP(t, pair.B.IfIndex, 0, nl.XDP_ATTACHED_NONE)
		}
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Errorf("interface is free again: %v", err)
		}
	})
}

func TestInterfaceGoes(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		dev := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "gone0"}, PeerName: "gone1"}
		if err := netlink.LinkAdd(dev); err != nil {
			t.Fatal(err)
		}
		l, err := netlink.LinkByName("gone0")
		if err != nil {
			t.Fatal(err)
		}
		p := mustLoad(t, cfg, 1)
		if err := p.Attach(l.Attrs().Index, Native); err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkDel(l); err != nil {
			t.Fatal(err)
		}
		if got := p.Mode(); got != Detached {
			t.Errorf("mode %v on an interface that is gone, want %v", got, Detached)
		}
	})
}

// All other traffic works while the program is attached to both ends.
func TestKernelTrafficPasses(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) {
			pair := testnet.NewPair(t, testnet.Options{Queues: 3})
			var programs [2]*Program
			for i, s := range []*testnet.Side{pair.A, pair.B} {
				p := mustLoad(t, Config{MAC: [6]byte(s.MAC), UDP: true, Addrs: []netip.Addr{s.IP4, s.IP6}}, 3)
				if err := s.Do(func() error { return p.Attach(s.IfIndex, mode) }); err != nil {
					t.Fatal(err)
				}
				programs[i] = p
			}
			for _, ip := range []netip.Addr{pair.B.IP4, pair.B.IP6} {
				for _, proto := range []string{"udp", "tcp"} {
					if err := echo(pair, proto, netip.AddrPortFrom(ip, 7)); err != nil {
						t.Errorf("%s to %v: %v", proto, ip, err)
					}
				}
			}
			// A datagram to our own port, however, is taken for a frame.
			if err := pair.A.Do(func() error { return send(pair.B.IP4, fab(8, 46)) }); err != nil {
				t.Fatal(err)
			}
			for i, p := range programs {
				n := await(t, p, func(n [NumReasons]uint64) bool { return n[DropNoSocket] >= uint64(i) })
				if n[PassOther] < 4 || n[DropNoSocket] != uint64(i) || n[Redirect] != 0 {
					t.Errorf("side %d: unexpected counters %v", i, n)
				}
			}
		})
	}
}

// await returns the counters when they are as expected, or as they are when it has
// waited long enough: veth hands packets over in a softirq, which may come later.
func await(t *testing.T, p *Program, enough func([NumReasons]uint64) bool) (n [NumReasons]uint64) {
	t.Helper()
	var err error
	for end := time.Now().Add(testnet.Patience); ; time.Sleep(time.Millisecond) {
		if n, err = p.Counters(); err != nil {
			t.Fatal(err)
		}
		if enough(n) || time.Now().After(end) {
			return n
		}
	}
}

func send(to netip.Addr, frame []byte) error {
	c, err := net.Dial("udp", netip.AddrPortFrom(to, DefaultPort).String())
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write(frame)
	return err
}

// echo sends some bytes from A to a server on B and expects them back.
func echo(pair *testnet.Pair, proto string, at netip.AddrPort) error {
	var server io.Closer
	err := pair.B.Do(func() error {
		if proto == "tcp" {
			l, err := net.Listen(proto, at.String())
			if err != nil {
				return err
			}
			server = l
			go func() {
				if c, err := l.Accept(); err == nil {
					io.Copy(c, c)
					c.Close()
				}
			}()
			return nil
		}
		c, err := net.ListenPacket(proto, at.String())
		if err != nil {
			return err
		}
		server = c
		go func() {
			b := make([]byte, 2000)
			if n, from, err := c.ReadFrom(b); err == nil {
				c.WriteTo(b[:n], from)
			}
		}()
		return nil
	})
	if err != nil {
		return err
	}
	defer server.Close()
	return pair.A.Do(func() error {
		c, err := net.Dial(proto, at.String())
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		b := make([]byte, 5)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
			return fmt.Errorf("got %q back: %w", b, err)
		}
		return nil
	})
}
