// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// inquire requests a connection from node 0 to node 1. The channel gets the outcome.
func (c *cable) inquire(data string) (*Inquiry, *[]session.Reason) {
	c.t.Helper()
	e, outcomes := c.nodes[0].eng[0], &[]session.Reason{}
	q, err := e.origin.Ask(ethernet(), 0, 7, []byte(data), func(_ wire.Connection, why session.Reason) { *outcomes = append(*outcomes, why) })
	if err != nil {
		c.t.Fatal(err)
	}
	return q, outcomes
}

// A request for a connection is repeated while it waits, its answer ends it, and it
// leaves nothing behind. What was captured of it is not even asked about once its cookies
// are too old.
func TestInquiry(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Minute})
	status, calls := wire.HelloWaiting, 0
	c.nodes[1].request = func(asked *wire.Connection) (wire.HelloStatus, wire.Connection) {
		if calls++; asked.Origin != c.nodes[0].eng[0].origin.id || string(asked.Bytes()) != "hello" {
			t.Errorf("asked by %+v", asked)
		}
		return status, wire.Connection{Set: true, Endpoint: 9}
	}
	_, outcomes := c.inquire("hello")
	c.idle(30 * time.Second) // longer than a cookie is good
	if len(*outcomes) > 0 || calls < 10 || calls > 100 {
		t.Errorf("after 30 s: %v, %d calls, want 10 to 100", *outcomes, calls)
	}
	status = wire.HelloConnect
	c.idle(time.Second)
	if !slices.Equal(*outcomes, []session.Reason{session.Alive}) {
		t.Errorf("accepted: %v", *outcomes)
	}
	if n := len(c.nodes[0].eng[0].table.all) + len(c.nodes[1].eng[0].table.all); n != 0 || c.sessions() != 0 {
		t.Errorf("%d sessions, want none", n)
	}
	c.idle(25 * time.Second)
	before := calls
	for _, packet := range slices.Clone(c.seen[1]) {
		c.deliver(1, packet)
	}
	c.idle(time.Second)
	if calls != before {
		t.Errorf("%d captured requests have been taken", calls-before)
	}
}

// A request ends once: with an answer, by silence, for want of one, with the engine, or
// with none if it is cancelled.
func TestInquiryEnds(t *testing.T) {
	for name, x := range map[string]struct {
		set  func(c *cable, q *Inquiry)
		want []session.Reason
	}{
		"rejected":  {func(c *cable, _ *Inquiry) { c.nodes[1].request = answering(wire.HelloRejected) }, []session.Reason{session.Rejected}},
		"accepted":  {func(c *cable, _ *Inquiry) { c.nodes[1].request = answering(wire.HelloAccepted) }, []session.Reason{session.RefusedEndpoint}},
		"unknown":   {func(c *cable, _ *Inquiry) {}, []session.Reason{session.RefusedEndpoint}},
		"waiting":   {func(c *cable, _ *Inquiry) { c.nodes[1].request = answering(wire.HelloWaiting) }, []session.Reason{session.Unanswered}},
		"silent":    {func(c *cable, _ *Inquiry) { c.pass = func(int, []byte) bool { return false } }, []session.Reason{session.PeerSilent}},
		"cancelled": {func(c *cable, q *Inquiry) { q.Cancel(); q.Cancel() }, nil},
		"closed":    {func(c *cable, q *Inquiry) { q.shutdown() }, []session.Reason{session.ClosedHere}},
	} {
		c := newCable(t, session.Config{})
		q, outcomes := c.inquire("")
		x.set(c, q)
		c.idle(20 * time.Second)
		if !slices.Equal(*outcomes, x.want) || q.slot.id != 0 {
			t.Errorf("%s: %v, want %v", name, *outcomes, x.want)
		}
		if err := c.nodes[0].eng[0].Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// answering is a listener that gives one answer.
func answering(s wire.HelloStatus) func(*wire.Connection) (wire.HelloStatus, wire.Connection) {
	return func(*wire.Connection) (wire.HelloStatus, wire.Connection) { return s, wire.Connection{Set: true} }
}
