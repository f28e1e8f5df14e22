// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// handOver writes bytes of several lengths with a signal that adds to a word, and finds
// both done, once; and neither, if the signal is refused.
func handOver(t *testing.T, p *xdpfab.Peer, data, signalled xdpfab.RemoteRegion) {
	t.Helper()
	const at, index, step = 4096, 100, 3
	c := ctx(t)
	word := xdpfab.WordAt[uint64](p, signalled, index)
	sum, err := word.Load(c)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	check := func(n int, want []byte) {
		t.Helper()
		got := make([]byte, len(want))
		if err := p.Read(c, data, at, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %v, as written: %t", n, err, bytes.Equal(got, want))
		}
		if v, err := word.Load(c); v != sum || err != nil {
			t.Errorf("%d bytes: the word is %d, %v; want %d", n, v, err, sum)
		}
	}
	for _, n := range []int{0, 1, 8, 48, 49, 1400, 1500, 20_000, 50_001} {
		b := random(rng, n)
		if err := p.WriteSignal(c, data, at, b, xdpfab.Signal{Region: signalled, Index: index, Op: atomic.Sum, Value: step}); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		sum += step
		check(n, b)
		beyond := xdpfab.Signal{Region: signalled, Index: signalled.Size / 8, Op: atomic.Sum, Value: step}
		beyond.Region.Size = 0 // the target finds out
		if err := p.WriteSignal(c, data, at, make([]byte, n), beyond); !errors.Is(err, fi.ErrOutOfBounds) || !errors.Is(err, fi.ErrNotExecuted) {
			t.Errorf("%d bytes, with a signal beyond the end: %v", n, err)
		}
		check(n, b)
	}
}

// lookUp returns a peer and its regions.
func lookUp(t *testing.T, d *xdpfab.Domain, addr string, names ...string) (*xdpfab.Peer, []xdpfab.RemoteRegion) {
	t.Helper()
	p, err := d.Dial(ctx(t), addr)
	if err != nil {
		t.Fatal(err)
	}
	var all []xdpfab.RemoteRegion
	for _, name := range names {
		r, err := p.Lookup(ctx(t), name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return p, all
}

// Guests at both ends of a real link hand over as their hosts would.
func TestVethWriteSignalGuests(t *testing.T) {
	a, b, pair := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	client, server := guestOf(t, a, fi.DomainAttr{}), guestOf(t, b, fi.DomainAttr{})
	for _, name := range []string{"data", "words"} {
		if _, err := server.NewRegion(name, 64<<10); err != nil {
			t.Fatal(err)
		}
	}
	ep, err := server.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err := errors.Join(err, ep.Enable()); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{server.Name(7), pair.B.IP4.String() + "/7"} {
		p, r := lookUp(t, client, addr, "data", "words")
		handOver(t, p, r[0], r[1])
		handOver(t, p, r[0], r[0])
	}
}

// A write with a signal goes to a resident region, and from there to another one, while
// the XDP program adds to the word that is signalled: user space executes it, and no
// addition of either is lost.
func TestResidentWriteSignal(t *testing.T) {
	for name, udp := range map[string]bool{"Ethernet": false, "UDP": true} {
		t.Run(name, func(t *testing.T) {
			a, b, hot := onResident(t, 1, fi.DomainAttr{EthernetOnly: !udp}, fi.DomainAttr{EthernetOnly: !udp})
			p, r := lookUp(t, a, b.Name(0), "hot", "r")
			handOver(t, p, r[0], r[0])
			handOver(t, p, r[0], r[1])
			handOver(t, p, r[1], r[0])
			addBesideSignals(t, a, b, hot)
		})
	}
}

// addBesideSignals has a word of a resident region changed by the program and by signals
// at once.
func addBesideSignals(t *testing.T, a, b *xdpfab.Domain, hot *mr.Region) {
	t.Helper()
	const index, value = 7, 1 << 32
	adds, signals := uint64(reduced(2000, 500)), uint64(0)
	p, r := lookUp(t, a, b.Name(0), "hot")
	other, s := lookUp(t, guestOf(t, a, fi.DomainAttr{}), b.Name(0), "hot") // by a session of its own
	by, added := stat(t, b, "resident_requests_executed"), make(chan error)
	go func() (err error) {
		defer func() { added <- err }()
		w := xdpfab.WordAt[uint64](other, s[0], index)
		for i := uint64(0); i < adds && err == nil; i++ {
			_, err = w.Add(ctx(t), 1)
		}
		return err
	}()
	for adding := true; adding; signals++ {
		s := xdpfab.Signal{Region: r[0], Index: index, Op: atomic.Sum, Value: value}
		if err := p.WriteSignal(ctx(t), r[0], 4096, make([]byte, 3000), s); err != nil {
			t.Fatal(errors.Join(err, <-added))
		}
		select {
		case err := <-added:
			if err != nil {
				t.Fatal(err)
			}
			adding = false
		default:
		}
	}
	own, err := hot.Uint64(index)
	if err != nil {
		t.Fatal(err)
	}
	if v := own.Load(); v != adds+signals*value {
		t.Errorf("the word is %#x after %d additions of 1 and %d signals", v, adds, signals)
	}
	n := stat(t, b, "resident_requests_executed") - by
	if n == 0 {
		t.Error("the XDP program has executed nothing")
	}
	t.Logf("%d of %d additions were the program's, beside %d signals", n, adds, signals)
}
