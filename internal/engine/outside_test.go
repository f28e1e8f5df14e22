// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
)

// lend makes the second queue of node 1 that of another process, which serves endpoint 5.
// What it has to do with the first one goes by Outside and Deliver.
func (c *cable) lend() (host, borrower *Engine) {
	host, borrower = c.nodes[1].eng[0], c.nodes[1].eng[1]
	borrower.pairs, borrower.cfg.Life = newPairs([32]byte{2}), 77
	host.cfg.Elsewhere = func(endpoint uint16) (int, bool) { return 1, endpoint == 5 }
	host.cfg.Outside = func(packet []byte, queue int) bool {
		if queue == 1 || queue == AnyQueue {
			borrower.Deliver(packet, true)
			return true
		}
		return false
	}
	borrower.cfg.Elsewhere = func(endpoint uint16) (int, bool) { return AnyQueue, endpoint != 5 }
	borrower.cfg.Outside = func(packet []byte, queue int) bool {
		host.Deliver(packet, false)
		return true
	}
	NewGroup([]*Engine{host})
	NewGroup([]*Engine{borrower})
	return host, borrower
}

// Whatever queue the packets of a session arrive on, they come to the process that serves
// its endpoint, and the session lives there.
func TestQueueOfAnotherProcess(t *testing.T) {
	for _, endpoint := range []uint16{0, 5} {
		for steer := range 2 {
			t.Run(fmt.Sprintf("endpoint %d, queue %d", endpoint, steer), func(t *testing.T) {
				c := newCable(t, session.Config{})
				host, borrower := c.lend()
				c.steer = steer
				p, err := c.nodes[0].eng[0].NewPeer(ethernet(), 0, endpoint)
				if err != nil {
					t.Fatal(err)
				}
				for i := range uint64(100) {
					c.write(p, 3, i)
					if c.word(3) != i {
						t.Fatalf("word %d, want %d", c.word(3), i)
					}
				}
				at, other := host, borrower
				if endpoint == 5 {
					at, other = borrower, host
				}
				if at.accepted != 1 || other.accepted != 0 {
					t.Errorf("%d sessions where the endpoint is, %d elsewhere", at.accepted, other.accepted)
				}
				if handed, direct := c.nodes[1].counted(HandedOver), (steer == 1) == (endpoint == 5); (handed == 0) != direct {
					t.Errorf("%d packets handed over", handed)
				}
				// The queue changes while the session lives.
				c.steer = 1 - steer
				c.write(p, 3, 1000)
			})
		}
	}
}

// A packet that came from another process goes back to none: if both believe that an
// endpoint is the other's, its peer is told that there is none.
func TestNoPing(t *testing.T) {
	c := newCable(t, session.Config{})
	host, borrower := c.lend()
	host.cfg.Elsewhere = func(uint16) (int, bool) { return 1, true }
	borrower.cfg.Elsewhere = func(uint16) (int, bool) { return AnyQueue, true }
	borrower.cfg.Accept = nil
	for steer := range 2 {
		c.steer = steer
		before := c.nodes[1].counted(HandedOver)
		if r := c.done(c.post(c.peer(ethernet()), 3, 1)); r.Outcome == Success {
			t.Errorf("queue %d: %+v", steer, r)
		}
		if n := c.nodes[1].counted(HandedOver) - before; n == 0 || n > 4*uint64(steer+1) {
			t.Errorf("queue %d: a hello was handed over %d times", steer, n)
		}
	}
}
