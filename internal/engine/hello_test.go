// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// No answer to a hello whose source has not been proved is longer than that hello, so
// that nobody can have a target flood another node. The challenge of a target with
// something that outlives its process names that, so a second address of it gets no
// second session.
func TestAnswerIsNoLongerThanHello(t *testing.T) {
	for name, status := range map[string]wire.HelloStatus{
		"challenge": wire.HelloAccepted, "no endpoint": wire.HelloNoEndpoint, "full": wire.HelloFull,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			for _, e := range c.nodes[1].eng {
				e.cfg.Resident = 1<<63 | 9
			}
			c.nodes[1].refuse = status
			hello, answers := 0, 0
			c.pass = func(to int, packet []byte) bool {
				frame, _, _ := wire.Decap(packet)
				h, payload, _ := wire.Parse(frame)
				var m wire.HelloMsg
				var a wire.HelloAckMsg
				switch {
				case h.Type == wire.Hello && m.Parse(payload) == wire.ReasonOK && m.Cookie == (wire.Cookie{}):
					hello = len(packet)
				case h.Type == wire.HelloAck && a.Parse(payload) == wire.ReasonOK && a.Status != wire.HelloAccepted:
					if answers++; len(packet) > hello {
						t.Errorf("%v: %d bytes answer a hello of %d", a.Status, len(packet), hello)
					}
				}
				return true
			}
			for i, l := range []wire.Link{ethernet(), udp()} {
				if r := c.done(c.post(c.peer(l), i, 1)); (r.Outcome == Success) != (status == wire.HelloAccepted) {
					t.Errorf("%+v", r)
				}
			}
			if n := c.nodes[1].counted(SessionsAccepted); status == wire.HelloAccepted && n != 1 || answers < 2 {
				t.Errorf("%d sessions, %d answers without one; want 1, and at least 2", n, answers)
			}
		})
	}
}
