// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// Frames that arrive on queues that are not in use are handed over, counted, and told of
// once, in each of two lives of the interface.
func TestStrays(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 3, Straight: true})
	t.Run("MTU 1500", func(t *testing.T) { testStrays(t, p) })
	t.Run("MTU 9000", func(t *testing.T) {
		lengthen(t, p, 9000)
		testStrays(t, p)
	})
}

func testStrays(t *testing.T, p *testnet.Pair) {
	a := open(t, p.A, Options{})
	for range 2 {
		b := open(t, p.B, Options{Queues: 1})
		if len(b.Queues()) != 1 || b.Forwarders() != 2 {
			t.Fatalf("%d queues and %d forwarders: want 1 and 2", len(b.Queues()), b.Forwarders())
		}
		s := newStream(t, a, b, wire.Ethernet, 1)
		var got atomic.Uint32
		told := make(chan Event, 8)
		b.Mind(func(packet []byte) {
			s.check(t, packet)
			got.Add(1)
		}, func(e Event) { told <- e })
		for n, queue := range []int{1, 2, 1, 2} {
			q := a.Queues()[queue]
			q.Send(s.put(q.Buffer(), uint32(n)))
			if err := q.Flush(); err != nil {
				t.Fatal(err)
			}
			testnet.Eventually(t, "the frame is handed over", func() bool { return got.Load() > uint32(n) })
		}
		testnet.Eventually(t, "they are counted", func() bool { return b.counters(t)["forwarded"] == 4 })
		if c := b.counters(t); c["xdp_drop_no_socket"] != 0 {
			t.Errorf("%d frames without a socket", c["xdp_drop_no_socket"])
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if e := <-told; len(told) != 0 || e != (Event{Kind: Forwarded, From: "1"}) {
			t.Errorf("%+v, and %d more", e, len(told))
		}
	}
}

// More queues than sessions can name are heard, and by default few are in use. One that
// another program has is not heard: its frames are dropped, which is counted.
func TestManyQueues(t *testing.T) {
	const many = nic.MaxQueues + 2
	p := testnet.NewPair(t, testnet.Options{Queues: many, Straight: true})
	umem, err := xsk.NewUMEM(xsk.UMEMConfig{Chunks: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer umem.Close()
	var foreign *xsk.Socket
	if err := p.B.Do(func() (err error) {
		foreign, err = xsk.Open(xsk.Config{UMEM: umem, IfIndex: p.B.IfIndex, Queue: many - 2, Mode: xsk.Copy})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	a, b := open(t, p.A, Options{Queues: 1}), open(t, p.B, Options{})
	if len(b.Queues()) != nic.DefaultQueues || b.Forwarders() != many-nic.DefaultQueues-1 {
		t.Fatalf("%d queues and %d forwarders: want %d and %d", len(b.Queues()), b.Forwarders(), nic.DefaultQueues,
			many-nic.DefaultQueues-1)
	}
	s := newStream(t, a, b, wire.Ethernet, 1)
	var got atomic.Uint32
	told := make(chan Event, 8)
	b.Mind(func(packet []byte) { s.check(t, packet); got.Add(1) }, func(e Event) { told <- e })
	if e := <-told; e != (Event{Kind: Unheard, From: "1"}) {
		t.Errorf("%+v: want one queue that is not heard", e)
	}
	send := func(queue int) {
		t.Helper()
		q := a.aside[0].(*forwarders).queues[queue-1]
		q.Send(s.put(q.Buffer(), 0))
		if err := q.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	send(many - 1)
	testnet.Eventually(t, "a frame on the last queue is handed over", func() bool { return got.Load() == 1 })
	send(many - 2)
	testnet.Eventually(t, "a frame on the other's queue is counted", func() bool { return b.counters(t)["xdp_drop_no_socket"] == 1 })
}
