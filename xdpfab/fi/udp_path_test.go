// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The MTU of both ends falls and rises again while a program writes, reads and adds. The
// kernel refuses to cut messages, breaks frames into fragments, and drops those that one
// end sends before the other is as narrow; the program notices nothing of it, and in the
// end frames go together as in the beginning.
func TestUDPMTUChanges(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewVeth(t, testnet.Options{})
	attr := fi.DomainAttr{Transport: fi.TransportUDP, GiveUp: 2 * time.Minute}
	a := openAt(t, pair.A, pair.A.IfName, attr)
	served(t, openAt(t, pair.B, pair.B.IfName, attr))
	mtu := func(bytes int, sides ...*testnet.Side) {
		t.Helper()
		for _, s := range sides {
			testnet.IP(t, s, fmt.Sprintf("link set dev %s mtu %d", s.IfName, bytes))
		}
	}
	for name, addr := range map[string]string{"IPv4": pair.B.IP4.String(), "IPv6": pair.B.IP6.String()} {
		t.Run(name, func(t *testing.T) {
			p, err := a.Dial(ctx(t), addr)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			var rounds, stop atomic.Uint64
			done := make(chan error, 1)
			go func() { done <- work(t, p, &rounds, &stop) }()
			more := func(n uint64) {
				t.Helper()
				base := rounds.Load()
				testnet.Eventually(t, fmt.Sprintf("%d rounds more", n), func() bool { return rounds.Load() >= base+n || len(done) > 0 })
			}
			for range 2 {
				more(2)
				mtu(1300, pair.A, pair.B) // in this order: frames of B are dropped until B has it, too
				uncut := stat(t, a, "udp_tx_uncut")
				testnet.Eventually(t, "a message refused", func() bool { return stat(t, a, "udp_tx_uncut") > uncut || len(done) > 0 })
				more(2)
				mtu(1500, pair.A, pair.B)
			}
			joined := stat(t, a, "udp_tx_joined")
			testnet.Eventually(t, "frames going together again", func() bool { return stat(t, a, "udp_tx_joined") > joined || len(done) > 0 })
			stop.Store(1)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// work writes, reads and adds until it is stopped. All that it finds must be what it
// has done.
func work(t *testing.T, p *xdpfab.Peer, rounds, stop *atomic.Uint64) error {
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		return err
	}
	w := xdpfab.WordAt[uint64](p, r, 0)
	first, err := w.Load(ctx(t))
	if err != nil {
		return err
	}
	data, back := make([]byte, 256<<10), make([]byte, 256<<10)
	for n := uint64(1); stop.Load() == 0; n++ {
		for i := range data {
			data[i] = byte(uint64(i)*7 + n)
		}
		if err := p.Write(ctx(t), r, 4096, data); err != nil {
			return err
		}
		if err := p.Read(ctx(t), r, 4096, back); err != nil {
			return err
		}
		if !bytes.Equal(data, back) {
			return fmt.Errorf("round %d: what was read is not what was written", n)
		}
		if sum, err := w.Add(ctx(t), 1); sum != first+n || err != nil {
			return fmt.Errorf("round %d: %d, %w, want %d", n, sum-first, err, n)
		}
		rounds.Add(1)
	}
	return nil
}
