// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk_test

import (
	"fmt"
	"log"
	"net"
	"time"

	"github.com/xdpfab/xdpfab/xsk"
)

// A responder: every frame that an XDP program redirects to queue 0 of eth0 goes
// back to where it came from. The chunk that a frame came in is sent as it is and
// returns to Fill when its sending is complete. It is compiled, not run: it takes an
// interface with an XDP program. The package's tests run the same loop over veth.
func Example() {
	eth0, err := net.InterfaceByName("eth0")
	if err != nil {
		log.Fatal(err)
	}
	umem, err := xsk.NewUMEM(xsk.UMEMConfig{Chunks: 2048})
	if err != nil {
		log.Fatal(err)
	}
	defer umem.Close()
	s, err := xsk.Open(xsk.Config{UMEM: umem, IfIndex: eth0.Index})
	if err != nil {
		log.Fatal(err) // names the missing capability, the busy queue, …
	}
	defer s.Close()
	// Here s.FD() goes into the XSKMAP of the XDP program on eth0.

	fill, rx, tx, done := s.Fill(), s.RX(), s.TX(), s.Completion()
	n := fill.Reserve(umem.Chunks())
	for i := range n {
		fill.Set(i, umem.Addr(i))
	}
	fill.Submit(n)

	for {
		s.WakeRX()
		if _, err := s.Poll(time.Second, nil); err != nil {
			log.Fatal(err)
		}
		n := tx.Reserve(rx.Peek(64))
		for i := range n {
			d := rx.Get(i)
			f := umem.Frame(d)
			var mac [6]byte
			copy(mac[:], f)
			copy(f, f[6:12])
			copy(f[6:], mac[:])
			tx.Set(i, d)
		}
		rx.Release(n)
		tx.Submit(n)
		if err := s.Kick().Err(); err != nil {
			log.Fatal(err)
		}
		n = fill.Reserve(done.Peek(64))
		for i := range n {
			fill.Set(i, done.Get(i))
		}
		done.Release(n)
		fill.Submit(n)
	}
}

// A pool follows each chunk from Get to its completion and refuses completions
// of frames that are not in flight.
func ExampleFramePool() {
	pool, err := xsk.NewFramePool(0, 64, 2048)
	if err != nil {
		log.Fatal(err)
	}
	addr, _ := pool.Get()
	pool.Sent(addr) // the descriptor goes into TX
	fmt.Println("free", pool.Free(), "in flight", pool.InFlight())
	pool.Complete(addr) // Reap does this for a whole completion ring
	fmt.Println("free", pool.Free(), "in flight", pool.InFlight())
	fmt.Println("accepted again:", pool.Complete(addr), "bogus:", pool.Bogus())
	// Output:
	// free 63 in flight 1
	// free 64 in flight 0
	// accepted again: false bogus: 1
}
