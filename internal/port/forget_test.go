// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The program of a driver that forgets it is attached anew when the interface is up again
// after it was set down, and only then. A veth forgets nothing, so that here it is seen
// by the link alone; test-nic shows it on vmxnet3.
func TestForgetfulDriver(t *testing.T) {
	before := forgetful
	forgetful = append(forgetful, "veth")
	defer func() { forgetful = before }()
	p := testnet.NewVeth(t, testnet.Options{})
	a, b := open(t, p.A, Options{RingSize: 256}), open(t, p.B, Options{RingSize: 256})
	told := watched(t, b)
	link := func() (id uint32) {
		if err := p.B.Do(func() error {
			h, err := bpf.Holder(p.B.IfName, p.B.IfIndex)
			if h != nil {
				id = h.LinkID
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := link()
	configure(t, p.B, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetDown(l) })
	told.awaitKind(t, Down)
	if now := link(); now != first || first == 0 {
		t.Errorf("attached by link %d, was %d: want no change while the interface is down", now, first)
	}
	configure(t, p.B, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetUp(l) })
	told.awaitKind(t, Up)
	// A late notice that it was set down may have it renewed once more.
	testnet.Eventually(t, "the same program, by another link", func() bool {
		now := link()
		return now != first && now != 0 && attached(t, p.B) == b.program.ID()
	})
	s, psn := newStream(t, a, b, wire.Ethernet, 0), uint32(0)
	testnet.Eventually(t, "a frame that arrives", func() bool {
		psn += uint32(s.send(t, a.Queues()[0], psn, 1))
		a.Queues()[0].Receive(nil)
		return len(s.receive(t, b.Queues()[0])) > 0
	})
	for _, e := range told.all() {
		if e.Kind == Detached {
			t.Errorf("told %+v", e)
		}
	}
}
