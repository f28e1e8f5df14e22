// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// tap sees all packets that pass an interface of a namespace.
type tap struct {
	t  *testing.T
	fd int
}

func newTap(t *testing.T, s *testnet.Side, ifname string) *tap {
	t.Helper()
	c := &tap{t: t}
	err := s.Do(func() error {
		i, err := net.InterfaceByName(ifname)
		if err != nil {
			return err
		}
		all := uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8
		if c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, int(all)); err != nil {
			return err
		}
		return errors.Join(unix.SetsockoptInt(c.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index}))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(c.fd) })
	return c
}

// seen is a frame of xdpfab as a tap sees it.
type seen struct {
	from     string // MAC
	kind     string
	dscp     byte
	tagged   bool
	vlan     uint16
	priority byte
}

// take returns the frames of xdpfab that have passed since the last call. The kernel
// takes tags off before taps see a packet, and tells of them beside.
func (c *tap) take() (all []seen) {
	c.t.Helper()
	b, oob := make([]byte, 4096), make([]byte, 256)
	for {
		n, m, _, _, err := unix.Recvmsg(c.fd, b, oob, 0)
		if errors.Is(err, unix.EAGAIN) {
			return all
		}
		if err != nil {
			c.t.Fatal(err)
		}
		s := seen{from: net.HardwareAddr(b[6:12]).String()}
		messages, err := unix.ParseSocketControlMessage(oob[:m])
		if err != nil {
			c.t.Fatal(err)
		}
		for _, msg := range messages { // struct tpacket_auxdata
			if tci := binary.NativeEndian.Uint16(msg.Data[16:]); binary.NativeEndian.Uint32(msg.Data)&unix.TP_STATUS_VLAN_VALID != 0 {
				s.tagged, s.vlan, s.priority = true, tci&0xfff, byte(tci>>13)
			}
		}
		p, port := b[14:n], 0
		switch binary.BigEndian.Uint16(b[12:]) {
		case 0x88B5:
			s.kind = "ethernet"
		case 0x0800:
			s.kind, s.dscp, port = "udp4", p[1]>>2, 20
		case 0x86DD:
			s.kind, s.dscp, port = "udp6", byte(binary.BigEndian.Uint16(p)>>6&0x3f), 40
		}
		if s.kind == "" || port > 0 && (len(p) < port+4 || binary.BigEndian.Uint16(p[port+2:]) != 0x88B5) {
			continue // the kernel's own
		}
		all = append(all, s)
	}
}

// The packets of an endpoint, and the answers to them, carry its class over a real
// switch: the codepoint over UDP, the priority tag on raw Ethernet. A class of the domain
// is that of the endpoint that dials.
func TestVethTrafficClass(t *testing.T) {
	testnet.Require(t)
	star := testnet.NewStar(t, 2, testnet.Options{})
	open := func(i int, class fi.TrafficClass) (d *xdpfab.Domain) {
		err := star.Sides[i].Do(func() error {
			list, err := fi.GetInfo(ctx(t), &fi.Info{AddrFormat: fi.AddrIPv4,
				Domain: fi.DomainInfo{Name: star.Sides[i].IfName, TrafficClass: class}})
			if err != nil {
				return err
			}
			d, err = on(openInfo(ctx(t), &list[0], fi.DomainAttr{}))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	server := open(1, fi.TrafficUnspec)
	defer server.CloseAll()
	ep, err := server.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = server.NewRegion("r", 4096); err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	hub, port := star.Port(0)
	watch := newTap(t, hub, port)
	for _, class := range []fi.TrafficClass{fi.TrafficUnspec, fi.TrafficDedicatedAccess, fi.TrafficScavenger, fi.TrafficDSCP(63)} {
		client := open(0, class)
		for kind, addr := range map[string]string{"ethernet": server.Name(0), "udp4": star.Sides[1].IP4.String(), "udp6": star.Sides[1].IP6.String()} {
			p, err := client.Dial(ctx(t), addr)
			if err != nil {
				t.Fatalf("%v, %s: %v", class, kind, err)
			}
			w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Add(ctx(t), 1); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.CloseAll(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // rounds of the server, after which it has answered what came twice as well
			settled(t, server)
		}
		count := map[seen]int{}
		for _, got := range watch.take() {
			count[got]++
		}
		for _, kind := range []string{"ethernet", "udp4", "udp6"} {
			for _, s := range star.Sides {
				want := seen{kind: kind, from: s.MAC.String()}
				if kind == "ethernet" {
					want.tagged, want.priority = class.PCP() > 0, class.PCP()
				} else {
					want.dscp = class.DSCP()
				}
				if n := count[want]; n < 4 { // two of the handshake, a look-up and an addition
					t.Errorf("%v: %d frames %+v, want at least 4", class, n, want)
				}
				delete(count, want)
			}
		}
		for got, n := range count {
			t.Errorf("%v: %d frames %+v, which nothing should send", class, n, got)
		}
	}
}

// An endpoint's class comes before the domain's, and is told by its info. A class that
// there is not is refused.
func TestTrafficClassInForce(t *testing.T) {
	d, other, err := xdpfab.Pipe(fi.DomainAttr{TrafficClass: fi.TrafficBulkData})
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	if i := d.Info(); i.Domain.TrafficClass != fi.TrafficBulkData || i.Transmit.TrafficClass != fi.TrafficBulkData {
		t.Errorf("the domain has %v and %v, want bulk_data", i.Domain.TrafficClass, i.Transmit.TrafficClass)
	}
	for class, want := range map[fi.TrafficClass]fi.TrafficClass{
		fi.TrafficUnspec: fi.TrafficBulkData, fi.TrafficBestEffort: fi.TrafficBestEffort, fi.TrafficDSCP(11): fi.TrafficDSCP(11),
	} {
		ep, err := d.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, TrafficClass: class})
		if err != nil {
			t.Fatal(err)
		}
		if i := ep.Info(); ep.Attr().TrafficClass != want || i.Transmit.TrafficClass != want {
			t.Errorf("an endpoint of class %v has %v and tells %v, want %v", class, ep.Attr().TrafficClass, i.Transmit.TrafficClass, want)
		}
	}
	for _, class := range []fi.TrafficClass{fi.TrafficNetworkControl + 1, fi.TrafficDSCP(64), fi.TrafficDSCP(255), 0x200} {
		if _, err := d.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, TrafficClass: class}); !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("an endpoint of class %v: %v, want it refused", class, err)
		}
		if _, _, err := xdpfab.Pipe(fi.DomainAttr{TrafficClass: class}); !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("a domain of class %v: %v, want it refused", class, err)
		}
	}
	for class, want := range map[fi.TrafficClass][2]uint8{
		fi.TrafficUnspec: {}, fi.TrafficBestEffort: {}, fi.TrafficLowLatency: {32, 4}, fi.TrafficDedicatedAccess: {46, 5},
		fi.TrafficBulkData: {10, 2}, fi.TrafficScavenger: {1, 1}, fi.TrafficNetworkControl: {48, 6},
		fi.TrafficDSCP(0): {}, fi.TrafficDSCP(63): {63, 7},
	} {
		if got := [2]uint8{class.DSCP(), class.PCP()}; got != want {
			t.Errorf("%v: codepoint and priority %v, want %v", class, got, want)
		}
	}
}
