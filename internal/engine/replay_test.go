// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// noRoom is an inflow in which every message waits.
type noRoom struct{}

func (noRoom) InProgress() (has, lacks uint64)           { return 0, 0 }
func (noRoom) Begin()                                    {}
func (noRoom) Admit(*wire.Message) bool                  { return false }
func (noRoom) Fits(int) bool                             { return false }
func (noRoom) Put([]byte)                                {}
func (noRoom) Combine(*wire.Message, []byte) wire.Status { return 0 }
func (noRoom) Drop()                                     {}
func (noRoom) End()                                      {}
func (noRoom) Close()                                    {}

// Every frame that a target has sent, sent again and again after its death, keeps nobody
// waiting: not a watch, not a message that waited for room, not an operation.
func TestReplayReleasesWaiters(t *testing.T) {
	const giveUp = time.Second
	for name, post := range map[string]func(c *cable, p *Peer, r *outcomes){
		"watch": func(c *cable, p *Peer, r *outcomes) {
			c.watch(p, r)
			c.idle(10 * time.Second) // probes are answered
		},
		"message": func(c *cable, p *Peer, r *outcomes) {
			op := c.nodes[0].ring.Claim()
			op.Peer, op.Context, op.Verb, op.Key, op.Count, op.Flags = p.ID(), r, wire.VerbSend, 0, 8, 0
			op.SetOperands(make([]byte, 8), nil)
			op.Publish()
			c.idle(10 * time.Second) // it waits
		},
		"write": func(c *cable, p *Peer, r *outcomes) {
			c.pass = func(to int, _ []byte) bool { return to == 0 } // it does not arrive
			c.postTo(p, 0, 10, r)
			c.idle(10 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{GiveUp: giveUp, Features: wire.FeatureMessages | wire.FeatureEchoes})
			c.nodes[1].full = true
			p := c.peer(ethernet())
			for i := range uint64(10) {
				c.write(p, 0, i)
			}
			r := &outcomes{}
			post(c, p, r)
			if len(r.all) > 0 {
				t.Fatalf("ended too early: %+v", r.all)
			}
			c.pass = func(int, []byte) bool { return false }
			capture := c.seen[0]
			for took := time.Duration(0); len(r.all) == 0; took += 50 * time.Millisecond {
				if took > 2*giveUp {
					t.Fatalf("still waiting %v after the death of the target", took)
				}
				for _, packet := range capture {
					c.deliver(0, packet)
				}
				c.idle(50 * time.Millisecond)
			}
			if got := r.all[0]; got.Outcome == Success || got.Reason != session.GaveUp {
				t.Errorf("%+v, want that the target was given up", got)
			}
		})
	}
}

// Nor do they have a target given up that lives: what waits for room at it goes on to
// wait, though old frames say that nothing does.
func TestReplayEndsNoWait(t *testing.T) {
	const giveUp = time.Second
	c := newCable(t, session.Config{GiveUp: giveUp, Features: wire.FeatureMessages | wire.FeatureEchoes})
	c.nodes[1].full = true
	p := c.peer(ethernet())
	for i := range uint64(10) {
		c.write(p, 0, i)
	}
	capture := c.seen[0]
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Verb, op.Key, op.Count, op.Flags = p.ID(), r, wire.VerbSend, 0, 8, 0
	op.SetOperands(make([]byte, 8), nil)
	op.Publish()
	for took := time.Duration(0); took < 10*giveUp; took += 20 * time.Millisecond {
		c.idle(20 * time.Millisecond)
		if len(r.all) > 0 {
			t.Fatalf("%+v after %v, though the target lives", r.all, took)
		}
		for _, packet := range capture {
			c.deliver(0, packet)
		}
	}
}
