// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// narrow is an inflow that may have no room for the rest of a message, as that of a guest
// who does not read.
type narrow struct {
	session.Inflow
	shut, refused *bool
}

func (in narrow) Fits(n int) bool {
	if *in.shut {
		*in.refused = true
		return false
	}
	return in.Inflow.Fits(n)
}

// A target that has neither room for the rest of a message nor a buffer to keep it in
// waits for the sender to send it again: as long as the sender does, the message has not
// stalled, and when the sender falls silent, it has, though there is room now.
func TestMessageStallsUnkept(t *testing.T) {
	const giveUp = time.Second
	cfg := session.Config{GiveUp: giveUp, Features: wire.FeatureMessages}
	bn, a := receiving(t, 1, cfg, 0)
	shut, refused, told := false, false, 0
	bn.b = bn.nodeThat(bn.b.port, macB, cfg, func(c *engine.Config) {
		all := c.Inflow
		c.Inflow = func(endpoint uint16, from wire.Addr) session.Inflow {
			return narrow{all(endpoint, from), &shut, &refused}
		}
		c.Journal = func(n *engine.Note) {
			if n.Kind == engine.SessionStalled {
				told++
			}
		}
	})
	bn.b.inbox = matching.New(matching.Config{Receives: 16, Sink: a, Room: func() { bn.b.Room() }})
	var err error
	if bn.b.exec, err = executor.New(bn.b.mem, 1500, 1); err != nil {
		t.Fatal(err)
	}
	stranger := bn.b.exec.Begin(1, session.TargetParams{Epoch: 7, MaxFrame: 1400, Window: 8}, nil)
	early := wire.Header{Type: wire.Request, PSN: session.FirstPSN(7) + 1, Ack: session.FirstPSN(7) - 1, Ops: 1}
	if o := stranger.Receive(1, &early, []byte{0}, nil); o.Verdict != session.Held {
		t.Fatalf("the stranger's frame: %v, want it to take the only buffer", o.Verdict)
	}
	bn.a = bn.node(bn.a.port, macA, session.Config{GiveUp: time.Hour, Features: wire.FeatureMessages})
	wait := func(d time.Duration) {
		for until := bn.now + int64(d); bn.now < until; {
			bn.step()
		}
	}
	var first, second results
	p := bn.peer(0)
	bn.post(1<<16, 0, "first")
	bn.send(p, &first, pattern(1<<16, 1), 0, 0)
	bn.until(func() bool { return bn.b.inbox.Usage().Filling == 1 })
	shut = true
	bn.until(func() bool { return refused })
	wait(10 * giveUp)
	shut = false
	bn.until(func() bool { return first.n == 1 })
	if first.last.Outcome != engine.Success {
		t.Fatalf("a message that waited for room: %+v, want success", first.last)
	}
	bn.post(1<<16, 0, "second")
	bn.send(p, &second, pattern(1<<16, 2), 0, 0)
	bn.until(func() bool { return bn.b.inbox.Usage().Filling == 1 })
	shut, refused = true, false
	bn.until(func() bool { return refused })
	bn.a.port.SetFaults(port.Faults{Loss: 1})
	shut = false
	bn.b.Room()
	wait(3 * giveUp)
	bn.b.Publish()
	if n := bn.b.Counters()[engine.MessagesStalled]; n != 1 || told != 1 || bn.b.inbox.Usage().Filling != 0 {
		t.Errorf("%d messages have stalled, of %d the journal knows, and %d still fill a receive: want 1, 1 and none",
			n, told, bn.b.inbox.Usage().Filling)
	}
}
