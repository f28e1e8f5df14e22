// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// onLoopback opens two domains by UDP sockets on addresses of the loopback interface of
// a network namespace. The second one has a region and an endpoint.
func onLoopback(t testing.TB, client, server fi.DomainAttr) (a, b *xdpfab.Domain) {
	t.Helper()
	testnet.Require(t)
	pair := testnet.NewVeth(t, testnet.Options{})
	client.Transport, server.Transport = fi.TransportUDP, fi.TransportUDP
	return openAt(t, pair.A, "127.0.0.1", client), served(t, openAt(t, pair.A, "127.0.0.2", server))
}

// openAt opens a domain in a namespace.
func openAt(t testing.TB, s *testnet.Side, name string, attr fi.DomainAttr) (d *xdpfab.Domain) {
	t.Helper()
	err := s.Do(func() (err error) {
		d, err = xdpfab.Open(context.Background(), name, attr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// served gives a domain a region and an endpoint.
func served(t testing.TB, d *xdpfab.Domain) *xdpfab.Domain {
	t.Helper()
	ep, err := d.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewRegion("r", 1<<20); err != nil {
		t.Fatal(err)
	}
	return d
}

// exercise does atomics, arrays, remote reads and writes, also with a signal, and
// messages, each exactly once.
func exercise(t *testing.T, a, b *xdpfab.Domain, addr string) {
	t.Helper()
	p, err := a.Dial(ctx(t), addr)
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	times := reduced(1000, 200)
	before, err := w.Load(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	var adders sync.WaitGroup
	for range 4 {
		adders.Go(func() {
			c := ctx(t)
			for range times {
				if _, err := w.Add(c, 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	adders.Wait()
	if n, err := w.Load(ctx(t)); n-before != uint64(4*times) || err != nil {
		t.Errorf("sum %d, %v, want %d", n-before, err, 4*times)
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	v := xdpfab.VectorAt[uint64](p, r)
	at, sums := make([]uint64, 5000), make([]uint64, 5000) // of several frames
	for i := range at {
		at[i] = v.Len() - 1
	}
	first, err := xdpfab.WordAt[uint64](p, r, v.Len()-1).Load(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Add(ctx(t), at, slices.Repeat([]uint64{1}, len(at)), sums); err != nil || sums[4999]-first != 5000 || !slices.IsSorted(sums) {
		t.Errorf("%v, last sum %d, want 5000", err, sums[4999]-first)
	}
	data := make([]byte, 300_001)
	for i := range data {
		data[i] = byte(i * 7)
	}
	back := make([]byte, len(data))
	if err := p.Write(ctx(t), r, 4096, data); err != nil {
		t.Fatal(err)
	}
	if err := p.Read(ctx(t), r, 4096, back); err != nil || !bytes.Equal(data, back) {
		t.Errorf("read back: %v, equal: %v", err, bytes.Equal(data, back))
	}
	handOver(t, p, r, r)
	box, err := b.NewMailbox(xdpfab.MailboxAttr{Number: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	mp, err := a.Dial(ctx(t), addr+"/5")
	if err != nil {
		t.Fatal(err)
	}
	defer mp.Close()
	messages := reduced(500, 100)
	var sender sync.WaitGroup
	sender.Go(func() {
		for i := range messages {
			if err := mp.Send(ctx(t), fmt.Appendf(nil, "message %d", i)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range messages {
		m, err := box.Receive(ctx(t), make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("message %d", i); string(m.Bytes) != want {
			t.Fatalf("message %q, want %q", m.Bytes, want)
		}
	}
	sender.Wait()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestUDPLoopback(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(progress.String(), func(t *testing.T) {
			a, b := onLoopback(t, fi.DomainAttr{Progress: progress}, fi.DomainAttr{})
			if got := b.Name(0); got != "127.0.0.2" {
				t.Errorf("name %q, want 127.0.0.2", got)
			}
			exercise(t, a, b, b.Name(0))
		})
	}
}

// A node with UDP sockets speaks with one with AF_XDP, either way.
func TestUDPWithXDP(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewVeth(t, testnet.Options{})
	sockets := served(t, openAt(t, pair.A, pair.A.IfName, fi.DomainAttr{Transport: fi.TransportUDP}))
	xdp := served(t, openAt(t, pair.B, pair.B.IfName, fi.DomainAttr{}))
	for name, c := range map[string]struct {
		from, to *xdpfab.Domain
		addr     string
	}{
		"to XDP, IPv4":     {sockets, xdp, pair.B.IP4.String()},
		"to XDP, IPv6":     {sockets, xdp, pair.B.IP6.String()},
		"to sockets, IPv4": {xdp, sockets, pair.A.IP4.String()},
		"to sockets, IPv6": {xdp, sockets, pair.A.IP6.String()},
	} {
		t.Run(name, func(t *testing.T) { exercise(t, c.from, c.to, c.addr) })
	}
}

// The XDP program of a domain with UDP would take the packets of another one's sockets:
// whichever is opened second is refused. Nothing is refused once the first is closed.
func TestUDPBesideXDP(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewVeth(t, testnet.Options{})
	open := func(attr xdpfab.DomainAttr) (d *xdpfab.Domain, err error) {
		t.Helper()
		err = pair.A.Do(func() (err error) {
			d, err = xdpfab.Open(ctx(t), pair.A.IfName, attr)
			return err
		})
		return d, err
	}
	for name, c := range map[string]struct {
		first, second xdpfab.DomainAttr
		remedy        string // empty: both can be had
	}{
		"sockets second":  {xdpfab.DomainAttr{}, xdpfab.DomainAttr{Transport: fi.TransportUDP}, "AF_XDP"},
		"sockets first":   {xdpfab.DomainAttr{Transport: fi.TransportUDP}, xdpfab.DomainAttr{}, "without UDP"},
		"auto second":     {xdpfab.DomainAttr{Transport: fi.TransportUDP}, xdpfab.DomainAttr{Transport: fi.TransportAuto}, "without UDP"},
		"raw Ethernet":    {xdpfab.DomainAttr{EthernetOnly: true}, xdpfab.DomainAttr{Transport: fi.TransportUDP}, ""},
		"before Ethernet": {xdpfab.DomainAttr{Transport: fi.TransportUDP}, xdpfab.DomainAttr{EthernetOnly: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			first, err := open(c.first)
			if err != nil {
				t.Fatal(err)
			}
			second, err := open(c.second)
			if c.remedy != "" && (!errors.Is(err, xdpfab.ErrBusy) || !strings.Contains(err.Error(), c.remedy)) {
				t.Errorf("second: %v, want busy, and %q", err, c.remedy)
			}
			if c.remedy == "" && err != nil {
				t.Error(err)
			}
			if err := first.CloseAll(); err != nil {
				t.Error(err)
			}
			if err != nil {
				if second, err = open(c.second); err != nil {
					t.Fatal(err)
				}
			}
			if err := second.CloseAll(); err != nil {
				t.Error(err)
			}
		})
	}
}

// GetInfo offers sockets to hints that ask for them, and to no others; OpenInfo opens
// them at the address of the info, and refuses another transport than the info's.
func TestUDPInfo(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewVeth(t, testnet.Options{})
	hints := &fi.Info{Domain: fi.DomainInfo{Name: pair.A.IfName}, Endpoint: fi.EndpointInfo{Type: fi.EndpointRDM}}
	find := func(transport string) (list []fi.Info) {
		t.Helper()
		hints.Interface.Transport = transport
		if err := pair.A.Do(func() (err error) {
			list, err = fi.GetInfo(ctx(t), hints)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	sockets := find("udp")
	want := []string{pair.A.IP4.String(), pair.A.IP6.String()}
	for _, i := range sockets {
		want = slices.DeleteFunc(want, func(a string) bool { return a == i.Source })
		if i.Interface.Transport != "udp" || !i.Interface.UDP || i.Interface.Address != i.Source || len(i.Missing) > 0 {
			t.Errorf("offer %+v, want one of UDP sockets", i)
		}
	}
	if len(want) > 0 || len(sockets) != 2 {
		t.Errorf("%d offers, %v missing, want one for each version of IP", len(sockets), want)
	}
	all := find("")
	if i := slices.IndexFunc(all, func(i fi.Info) bool { return i.Interface.Transport != "xdp" }); i >= 0 {
		t.Errorf("%+v offered without the hint", all[i])
	}
	open := func(info *fi.Info, transport fi.Transport) (d *xdpfab.Domain, err error) {
		t.Helper()
		err = pair.A.Do(func() (err error) {
			d, err = on(openInfo(ctx(t), info, xdpfab.DomainAttr{Transport: transport}))
			return err
		})
		return d, err
	}
	for name, c := range map[string]struct {
		info      *fi.Info
		transport fi.Transport
	}{
		"udp for xdp": {&all[0], fi.TransportUDP}, "auto for xdp": {&all[0], fi.TransportAuto}, "auto for udp": {&sockets[0], fi.TransportAuto},
	} {
		if d, err := open(c.info, c.transport); !errors.Is(err, fi.ErrNoInfo) || !strings.Contains(fmt.Sprint(err), "DomainAttr.Transport") {
			t.Errorf("%s: %v, want a refusal of DomainAttr.Transport", name, err)
			if d != nil {
				_ = d.CloseAll()
			}
		}
	}
	for _, info := range sockets {
		d, err := open(&info, fi.TransportXDP)
		if err != nil {
			t.Fatal(err)
		}
		again := d.Info()
		if got := d.Interface(); got.Transport != "udp" || got.Address != info.Source || d.Name(0) != info.Source || again.Source != info.Source || again.Fabric.Name != info.Fabric.Name {
			t.Errorf("%+v, named %s, info of %s and %s; want %s and %s", got, d.Name(0), again.Source, again.Fabric.Name, info.Source, info.Fabric.Name)
		}
		if err := d.CloseAll(); err != nil {
			t.Error(err)
		}
		if d, err = open(&again, fi.TransportUDP); err != nil { // as it was
			t.Fatal(err)
		}
		if err := d.CloseAll(); err != nil {
			t.Error(err)
		}
	}
}

// What takes an XDP program is refused, before anything is opened.
func TestUDPRefuses(t *testing.T) {
	for name, attr := range map[string]fi.DomainAttr{
		"2 queues": {Queues: 2}, "DomainAttr.Lend": {Lend: 1}, "DomainAttr.Spread": {Spread: true},
		"DomainAttr.ResidentPin": {ResidentPin: "/sys/fs/bpf/x"}, "DomainAttr.Copy": {Copy: fi.CopyForce},
	} {
		attr.Transport = fi.TransportUDP
		d, err := xdpfab.Open(ctx(t), "lo", attr)
		if !errors.Is(err, fi.ErrNotImplemented) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		if err == nil {
			_ = d.CloseAll()
		}
	}
	_, b := onLoopback(t, fi.DomainAttr{}, fi.DomainAttr{})
	if _, err := b.NewResidentRegion("hot", 4096); !errors.Is(err, fi.ErrNotImplemented) || !strings.Contains(err.Error(), "--transport xdp") {
		t.Errorf("a resident region: %v, want a refusal with the remedy", err)
	}
}

// A MAC address is no address for UDP sockets: that is told as an impossible argument.
func TestUDPTakesNoMAC(t *testing.T) {
	a, _ := onLoopback(t, fi.DomainAttr{}, fi.DomainAttr{})
	_, err := a.Dial(ctx(t), "02:00:00:00:00:0b")
	if !errors.Is(err, fi.ErrArgument) || !errors.Is(err, fi.ErrNotExecuted) ||
		!strings.Contains(err.Error(), "use the peer's IP address") {
		t.Errorf("%v, want ErrArgument and the remedy", err)
	}
}
