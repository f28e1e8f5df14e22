// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// onResident is onVeth whose server has a resident region, too: "hot".
func onResident(t testing.TB, queues int, client, server fi.DomainAttr) (a, b *xdpfab.Domain, hot *mr.Region) {
	t.Helper()
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: see TestResidentRefused")
	}
	a, b, _ = onVeth(t, queues, client, server)
	hot, err := b.NewResidentRegion("hot", 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	return a, b, hot
}

// With zero-copy the XDP program executes, and its answers get out, too.
func TestResidentZeroCopy(t *testing.T) {
	if testnet.Granted(t).Copy != "zero-copy" {
		t.Skip("needs NICs with zero-copy: make test-nic")
	}
	a, b, _ := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{Copy: fi.ZeroCopyForce})
	hot, err := b.NewResidentRegion("hot", 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	testResidentWords(t, p, hot)
	if n := stat(t, b, "resident_requests_executed"); n == 0 {
		t.Error("the XDP program has executed nothing")
	}
	if n := stat(t, b, "resident_sessions_relayed"); n != 0 {
		t.Errorf("the poller answers for it in %d sessions", n)
	}
}

// stat returns a statistic of a domain.
func stat(t testing.TB, d *xdpfab.Domain, name string) uint64 {
	t.Helper()
	all, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	v, ok := all[name]
	if !ok {
		t.Fatalf("no statistic %q", name)
	}
	return v
}

// One session reaches a resident region and an ordinary one, with all datatypes and with
// bytes, each operation once and in order; and those that the XDP program can execute
// never reach the poller.
func TestResident(t *testing.T) {
	for name, udp := range map[string]bool{"Ethernet": false, "UDP": true} {
		t.Run(name, func(t *testing.T) {
			a, b, hot := onResident(t, 1, fi.DomainAttr{EthernetOnly: !udp}, fi.DomainAttr{EthernetOnly: !udp})
			p, err := a.Dial(ctx(t), b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			testResidentWords(t, p, hot)
			requests := stat(t, b, "requests_executed")
			w, err := xdpfab.Word[uint64](ctx(t), p, "hot", 9)
			if err != nil {
				t.Fatal(err)
			}
			const times, few = 500, 50 // the program may leave it a frame
			for i := range uint64(times) {
				if v, err := w.Add(ctx(t), 1); v != i+1 || err != nil {
					t.Fatalf("%d, %v, want %d", v, err, i+1)
				}
			}
			if n := stat(t, b, "resident_requests_executed"); n < times-few {
				t.Errorf("the XDP program executed %d requests, want at least %d", n, times-few)
			}
			if n := stat(t, b, "requests_executed") - requests; n < 1 || n > few { // the look-up
				t.Errorf("the poller executed %d requests, want 1 to %d", n, few)
			}
		})
	}
}

// testResidentWords mixes what the program executes with what it leaves to the poller.
func testResidentWords(t *testing.T, p *xdpfab.Peer, hot *mr.Region) {
	t.Helper()
	c := ctx(t)
	word, err := xdpfab.Word[uint64](c, p, "hot", 0)
	small, err2 := xdpfab.Word[int8](c, p, "hot", 8)
	real, err3 := xdpfab.Word[float64](c, p, "hot", 2)
	other, err4 := xdpfab.Word[uint64](c, p, "r", 0)
	region, err5 := p.Lookup(c, "hot")
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	own, err := hot.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	own.Store(7)
	for i := range uint64(20) {
		v, err := word.Add(c, 2)
		s, err2 := small.Add(c, -1)
		f, err3 := real.Add(c, 0.5)
		o, err4 := other.Add(c, 1)
		if err := errors.Join(err, err2, err3, err4); err != nil || v != 9+2*i || s != -1-int8(i) || f != 0.5+float64(i)/2 || o != i+1 {
			t.Fatalf("round %d: %d, %d, %v, %d, %v", i, v, s, f, o, err)
		}
	}
	if n := own.Add(1); n != 48 {
		t.Errorf("the owner finds %d, want 48", n)
	}
	b := make([]byte, 32)
	if err := p.Read(c, region, 0, b); err != nil || binary.LittleEndian.Uint64(b) != 48 || b[8] != 0xec || math.Float64frombits(binary.LittleEndian.Uint64(b[16:])) != 10 {
		t.Errorf("read %x, %v", b, err)
	}
	if err := p.Write(c, region, 24, []byte("written")); err != nil || string(hot.Bytes()[24:31]) != "written" {
		t.Errorf("wrote %q, %v", hot.Bytes()[24:31], err)
	}
	if _, err := xdpfab.WordAt[uint64](p, region, region.Size/8).Add(c, 1); !errors.Is(err, fi.ErrOutOfBounds) {
		t.Errorf("beyond the end: %v", err)
	}
}

// A key of a region that is closed is gone for the program too, and its memory can be
// freed at once; then the key can be used again.
func TestResidentRegionCloses(t *testing.T) {
	a, b, _ := onResident(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.NewResidentMemory("again", 4096)
	if err != nil {
		t.Fatal(err)
	}
	key := uint64(77)
	w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: key}, 1)
	for _, rights := range []mr.Access{mr.RemoteRead | mr.RemoteWrite, mr.RemoteRead} {
		r, err := b.Register(m, mr.Options{Key: &key, Access: rights, Length: 64})
		if err != nil {
			t.Fatal(err)
		}
		if rights&mr.RemoteWrite == 0 {
			if _, err := w.Add(ctx(t), 1); !errors.Is(err, fi.ErrAccess) {
				t.Errorf("without the right to write: %v", err)
			}
		} else if v, err := w.Add(ctx(t), 5); v != 5 || err != nil {
			t.Errorf("%d, %v, want 5", v, err)
		}
		if v, err := w.Load(ctx(t)); v != 5 || err != nil {
			t.Errorf("%d, %v, want 5", v, err)
		}
		if err := m.Close(); !errors.Is(err, mr.ErrInUse) {
			t.Errorf("closing memory in use: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Load(ctx(t)); !errors.Is(err, fi.ErrNoKey) {
			t.Errorf("after the end: %v", err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// Sessions beyond the places of the program, and those to an endpoint whose counters see
// what peers do, are served by the poller.
func TestResidentFallback(t *testing.T) {
	a, b, _ := onResident(t, 1, fi.DomainAttr{}, fi.DomainAttr{ResidentSessions: 1})
	counted, err := b.NewEndpoint(fi.EndpointAttr{Number: 5})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.NewEndpoint(fi.EndpointAttr{Number: 6})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(counted.Bind(c, fi.BindRemoteRead), counted.Enable(), other.Enable()); err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), b.Name(5))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "hot", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if v, err := w.Add(ctx(t), 1); v != i+1 || err != nil {
			t.Fatalf("%d, %v", v, err)
		}
	}
	if n := stat(t, b, "resident_sessions"); n != 0 {
		t.Errorf("%d sessions are resident, want none", n)
	}
	if err := c.Wait(ctx(t), 3); err != nil {
		t.Error(err)
	}
	var words []xdpfab.Remote[uint64]
	for _, number := range []uint16{0, 6} { // two sessions, and one place
		p, err := a.Dial(ctx(t), b.Name(number))
		if err != nil {
			t.Fatal(err)
		}
		w, err := xdpfab.Word[uint64](ctx(t), p, "hot", 0)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, w)
	}
	for i := range uint64(20) {
		if v, err := words[i%2].Add(ctx(t), 1); v != i+4 || err != nil {
			t.Fatalf("%d, %v, want %d", v, err, i+4)
		}
	}
	if n := stat(t, b, "resident_sessions"); n != 1 {
		t.Errorf("%d sessions are resident, want 1", n)
	}
}

// What cannot have resident memory says why, and goes on.
func TestResidentRefused(t *testing.T) {
	refused := func(d *xdpfab.Domain, want error) {
		t.Helper()
		if _, err := d.NewResidentMemory("m", 4096); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if _, err := d.NewRegion("ordinary", 4096); err != nil {
			t.Errorf("an ordinary region: %v", err)
		}
	}
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer b.CloseAll()
	defer a.CloseAll()
	refused(a, fi.ErrNotImplemented)
	if _, err := fi.NewFabric(fi.DomainAttr{ResidentSessions: 1 << 15}); err == nil {
		t.Error("too many sessions are accepted")
	}
	if testnet.KernelBefore(t, 5, 18) {
		_, b, _ := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
		refused(b, syscall.EOPNOTSUPP)
		return
	}
}

// Where frames may be longer than the program's, sessions that could become resident have
// shorter ones, and all others have not: bytes go to either sort of region.
func TestResidentLongFrames(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: see TestResidentRefused")
	}
	t.Run("MTU 3000", func(t *testing.T) { residentLongFrames(t, 3000) })
	t.Run("MTU 9000", func(t *testing.T) {
		if _, v := testnet.Kernel(t); !v.AtLeast(kernel.MultiBuffer) || testnet.Borrowed(t) != nil {
			t.Skipf("needs packets in several buffers: a veth, and Linux %v", kernel.MultiBuffer)
		}
		residentLongFrames(t, 9000)
	})
}

func residentLongFrames(t *testing.T, mtu int) {
	a, b, _ := openVeth(t, testnet.Options{MTU: mtu}, fi.DomainAttr{}, fi.DomainAttr{})
	hot, err := b.NewResidentRegion("hot", 64<<10)
	_, err2 := b.NewRegion("r", 1<<20)
	ep, err3 := b.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(err, err2, err3, ep.Enable()); err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	testResidentWords(t, p, hot)
	for _, name := range []string{"hot", "r"} {
		region, err := p.Lookup(ctx(t), name)
		if err != nil {
			t.Fatal(err)
		}
		want, got := make([]byte, 60_000), make([]byte, 60_000)
		for i := range want {
			want[i] = byte(i / 7)
		}
		if err := errors.Join(p.Write(ctx(t), region, 64, want), p.Read(ctx(t), region, 64, got)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %t", name, err, bytes.Equal(got, want))
		}
	}
	words, err := xdpfab.Vector[uint64](ctx(t), p, "hot")
	if err != nil {
		t.Fatal(err)
	}
	at, ones := make([]uint64, 1000), slices.Repeat([]uint64{1}, 1000)
	for i := range at {
		at[i] = 8000 // behind the bytes
	}
	before := stat(t, b, "resident_ops_executed")
	if err := words.Add(ctx(t), at, ones, nil); err != nil {
		t.Fatal(err)
	}
	if n := stat(t, b, "resident_ops_executed") - before; n < 500 {
		t.Errorf("the program executed %d of 1000 operations", n)
	}
}

// Memory of one domain is refused by another.
func TestResidentForeign(t *testing.T) {
	a, b, hot := onResident(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	if _, err := a.Register(hot.Memory(), mr.Options{}); !errors.Is(err, fi.ErrForeign) {
		t.Errorf("memory of another domain: %v", err)
	}
	if _, err := b.Register(hot.Memory(), mr.Options{Offset: 8}); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("from byte 8 on: %v", err)
	}
	if all := hot.Memory().Bytes(); len(all) != 64<<10 || slices.Max(all) != 0 {
		t.Error("the memory is not as it was")
	}
}
