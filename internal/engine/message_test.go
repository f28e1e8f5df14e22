// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// arrivals are the completions of a node's receives.
type arrivals struct{ list []matching.Done }

func (a *arrivals) Take() bool               { return true }
func (a *arrivals) Return()                  {}
func (a *arrivals) Deliver(d *matching.Done) { a.list = append(a.list, *d) }

// receiving is a bench whose second node receives messages, and may hold so many bytes of
// unexpected ones.
func receiving(t testing.TB, seed uint64, cfg session.Config, memory int) (*bench, *arrivals) {
	cfg.Features = wire.FeatureMessages | wire.FeatureUnordered | wire.FeatureTaggedAtomics
	bn := newBench(t, seed, cfg)
	a := &arrivals{}
	bn.b.inbox = matching.New(matching.Config{Receives: 4096, Unexpected: 64, Memory: memory, Sink: a, Room: func() { bn.b.Room() }})
	return bn, a
}

// send posts a message; tag 0 is none.
func (bn *bench) send(p *engine.Peer, to engine.Completer, data []byte, tag uint64, flags uint8) {
	s := bn.a.ring.Claim()
	for ; s == nil; s = bn.a.ring.Claim() {
		bn.step()
	}
	s.Peer, s.Context, s.Result = p.ID(), to, nil
	s.Verb, s.Key, s.Count, s.Opcode, s.Datatype, s.Flags = wire.VerbSend, tag, uint32(len(data)), 0, 1, flags
	if tag != 0 {
		s.Verb = wire.VerbTagged
	}
	s.SetOperands(data, nil)
	s.Publish()
}

// post posts a receive for any source; tag 0 is none.
func (bn *bench) post(n int, tag uint64, context any) []byte {
	b := make([]byte, n)
	if err := bn.b.inbox.Post(&matching.Receive{Match: matching.Match{AnySource: true, Tagged: tag != 0, Tag: tag}, Buffers: [][]byte{b}, Context: context}); err != nil {
		bn.t.Fatal(err)
	}
	return b
}

// pattern returns n bytes that depend on a number.
func pattern(n, of int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + of*31)
	}
	return b
}

// Messages of all lengths arrive once each, whole and in order, with and without loss,
// whether receives are posted before them or after.
func TestMessages(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 9))
		bn, a := receiving(t, seed, session.Config{}, 1<<20)
		if seed >= 10 {
			bn.a.port.SetFaults(port.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1})
			bn.b.port.SetFaults(port.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1})
		}
		p := bn.peer(0)
		var sent [][]byte
		var got [][]byte
		var r results
		for i := range 60 {
			data := pattern(rng.IntN(1<<rng.IntN(16)), i)
			sent = append(sent, data)
			early := rng.IntN(2) == 0
			if early {
				got = append(got, bn.post(len(data), 0, i))
			}
			bn.send(p, &r, data, 0, 0)
			for range rng.IntN(20) {
				bn.step()
			}
			if !early {
				got = append(got, bn.post(len(data), 0, i))
			}
		}
		bn.until(func() bool { return r.n == len(sent) && len(a.list) == len(sent) })
		for i, d := range a.list {
			if d.Context != i || d.Reason != matching.Received || d.Length != uint64(len(sent[i])) || !bytes.Equal(got[i], sent[i]) || d.From != (wire.Addr{MAC: macA}) {
				t.Fatalf("seed %d: message %d of %d bytes: %+v", seed, i, len(sent[i]), d)
			}
		}
		if r.fates[engine.Success] < r.n {
			t.Fatalf("seed %d: %d messages, fates %v, the last one: %+v", seed, r.n, r.fates, r.last)
		}
		bn.check()
		if err := bn.b.inbox.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// A message for which there is no room waits, however long; those before it in its frame
// do not, at either side.
func TestMessageWaitsForRoom(t *testing.T) {
	for _, flags := range []uint8{0, engine.FlagMatch} {
		bn, a := receiving(t, 1, session.Config{GiveUp: time.Second}, 0)
		p := bn.peer(0)
		var first, second, third results
		got := bn.post(100, 0, "first")
		bn.send(p, &first, pattern(100, 1), 0, flags)
		bn.send(p, &second, pattern(100, 2), 0, flags)
		bn.send(p, &third, pattern(5000, 3), 0, flags)
		bn.until(func() bool { return len(a.list) == 1 })
		if !bytes.Equal(got, pattern(100, 1)) {
			t.Fatal("the first message is not there")
		}
		for until := bn.now + int64(5*time.Minute); bn.now < until; {
			bn.step()
		}
		if first.n != 1 || second.n+third.n > 0 || bn.a.Check() != nil {
			t.Fatalf("completions %d, %d, %d while the second message waits, want that of the first", first.n, second.n, third.n)
		}
		bn.post(100, 0, "second")
		bn.until(func() bool { return second.n == 1 })
		bn.post(5000, 0, "third")
		bn.until(func() bool { return third.n == 1 })
		if first.fates[engine.Success]+second.fates[engine.Success]+third.fates[engine.Success] < 3 || len(a.list) != 3 {
			t.Fatalf("%+v %+v %+v", first.last, second.last, third.last)
		}
	}
}

// A message that is cancelled while a part of it is under way does not arrive, its
// receive takes the next one, and the session goes on.
func TestMessageCancelled(t *testing.T) {
	bn, a := receiving(t, 1, session.Config{}, 1<<20)
	p := bn.peer(0)
	var long, next results
	got := bn.post(1<<20, 0, "only")
	bn.send(p, &long, pattern(1<<20, 1), 0, 0)
	for range 4 {
		bn.step()
	}
	if long.n > 0 || !p.Cancel(&long) || long.n != 1 || long.last.Outcome != engine.NotExecuted {
		t.Fatalf("cancelled: %+v", long.last)
	}
	bn.send(p, &next, pattern(100, 2), 0, 0)
	bn.until(func() bool { return next.n == 1 })
	if next.fates[engine.Success] != 1 || len(a.list) != 1 || a.list[0].Length != 100 || !bytes.Equal(got[:100], pattern(100, 2)) {
		t.Fatalf("the next message: %+v, %+v", next.last, a.list)
	}
	bn.check()
}

// Operations that are posted when a message has been cancelled wait until the target has
// been told to drop that, at whatever moment they come.
func TestOperationsAfterACancelledMessage(t *testing.T) {
	for steps := 2; steps < 40; steps++ {
		bn, _ := receiving(t, 1, session.Config{Window: 4}, 1<<20)
		words := bn.region(7, 64, mr.RemoteRead|mr.RemoteWrite)
		p := bn.peer(0)
		var long, adds results
		bn.post(1<<20, 0, "only")
		bn.send(p, &long, pattern(1<<20, 1), 0, 0)
		for range steps {
			bn.step()
		}
		if long.n > 0 || !p.Cancel(&long) {
			t.Fatalf("cancelled after %d steps: %+v", steps, long.last)
		}
		const n = 20
		for range n {
			if !bn.fetchAdd(p, &adds, 7, 0, 1, make([]byte, 8)) {
				t.Fatal("no room in the ring")
			}
			bn.step()
		}
		bn.until(func() bool { return adds.n == n })
		if adds.fates[engine.Success] != n || words[0] != n || bn.b.Counters()[engine.Invalid] != 0 {
			t.Fatalf("cancelled after %d steps: %+v, the last one: %+v; %d ran", steps, adds.fates, adds.last, words[0])
		}
		bn.check()
	}
}

// When a session ends while a frame of messages has run in part, the initiator learns
// which of them have arrived.
func TestMessagesOfEndedSession(t *testing.T) {
	bn, a := receiving(t, 1, session.Config{}, 0)
	p := bn.peer(0)
	rs := make([]results, 5)
	bn.post(100, 0, 0)
	bn.post(100, 0, 1)
	for i := range rs {
		bn.send(p, &rs[i], pattern(100, i), 0, 0)
	}
	bn.until(func() bool { return len(a.list) == 2 })
	bn.b.EndTargets(0)
	bn.until(func() bool { return rs[4].n == 1 })
	for i := range rs {
		want := engine.Success
		if i >= 2 {
			want = engine.NotExecuted
		}
		if rs[i].n != 1 || rs[i].last.Outcome != want {
			t.Errorf("message %d: %+v, want %v", i, rs[i].last, want)
		}
	}
	bn.check()
}

// An endpoint that receives no messages refuses them, and nothing else.
func TestNoMessages(t *testing.T) {
	bn, _ := receiving(t, 1, session.Config{}, 0)
	bn.b.inbox = nil
	p := bn.peer(0)
	var r results
	bn.send(p, &r, pattern(10, 1), 7, 0)
	bn.until(func() bool { return r.n == 1 })
	if r.last.Outcome != engine.NotExecuted || r.last.Reason != session.NoMessages {
		t.Errorf("%+v, want not executed for want of messages", r.last)
	}
}

// A restart is told by the messages that were posted before it, whether they are in
// flight or still wait: none of these reaches the new life. Later ones do.
func TestMessagesAcrossRestart(t *testing.T) {
	cfg := session.Config{Window: 1, Features: wire.FeatureMessages}
	bn, _ := receiving(t, 1, cfg, 0)
	p := bn.peer(0)
	rs := make([]results, 3)
	bn.send(p, &rs[0], pattern(1400, 0), 0, 0)
	bn.send(p, &rs[1], pattern(1400, 1), 0, 0)
	for range 20 {
		bn.step()
	}
	bn.b = bn.node(bn.b.port, macB, cfg)
	a := &arrivals{}
	bn.b.inbox = matching.New(matching.Config{Receives: 4, Sink: a, Room: func() { bn.b.Room() }})
	got := bn.post(1400, 0, "new")
	bn.until(func() bool { return rs[0].n+rs[1].n == 2 })
	if rs[0].last.Outcome != engine.Restarted || rs[1].last != (engine.Result{Outcome: engine.NotExecuted, Reason: session.PeerRestarted}) {
		t.Fatalf("in flight: %+v, waiting: %+v", rs[0].last, rs[1].last)
	}
	bn.send(p, &rs[2], pattern(1400, 2), 0, 0)
	bn.until(func() bool { return rs[2].n == 1 })
	if rs[2].last.Outcome != engine.Success || len(a.list) != 1 || !bytes.Equal(got, pattern(1400, 2)) {
		t.Fatalf("a message to the new life: %+v, %+v", rs[2].last, a.list)
	}
}

// A session that ends while its next message waits for room is not tried again, nor kept.
func TestWaitingSessionEnds(t *testing.T) {
	bn, _ := receiving(t, 1, session.Config{}, 0)
	for range 3 {
		p := bn.peer(0)
		var r results
		bn.send(p, &r, pattern(100, 1), 0, engine.FlagMatch)
		for range 20 {
			bn.step()
		}
		p.Close()
		bn.until(func() bool { return r.n == 1 })
		for range 20 {
			bn.step()
		}
	}
	if err := bn.b.Check(); err != nil {
		t.Error(err)
	}
	if u := bn.b.Usage(); u.Sessions > 0 {
		t.Errorf("%+v, want no session", u)
	}
}

// While a message waits, its sender is not taken for one that hears nothing: the network
// is as it should be. If the receiver falls silent, it is.
func TestWaitingIsNoTrouble(t *testing.T) {
	alarms := 0
	bn, _ := receiving(t, 1, session.Config{Features: wire.FeatureMessages}, 0)
	bn.a = bn.nodeThat(bn.a.port, macA, session.Config{Features: wire.FeatureMessages}, func(c *engine.Config) {
		c.Suspect = func(wire.Link) { alarms++ }
	})
	p := bn.peer(0)
	var r results
	bn.send(p, &r, pattern(100, 1), 0, engine.FlagMatch)
	for until := bn.now + int64(time.Minute); bn.now < until; {
		bn.step()
	}
	if alarms > 0 || r.n > 0 {
		t.Errorf("%d alarms, %d completions while the message waits", alarms, r.n)
	}
	bn.b.port.SetFaults(port.Faults{Loss: 1})
	for until := bn.now + int64(4*time.Second); bn.now < until; {
		bn.step()
	}
	if alarms == 0 {
		t.Error("no alarm, though the receiver is silent")
	}
}

// Sessions that wait for room get it in turn.
func TestRoomIsShared(t *testing.T) {
	bn, a := receiving(t, 1, session.Config{}, 0)
	other := bn.a.NewOrigin(9)
	ring, err := engine.NewRing(256, engine.Contexts{})
	if err != nil {
		t.Fatal(err)
	}
	bn.a.AddRing(ring, other)
	q, err := other.NewPeer(wire.Link{Local: macA, Remote: macB}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, own := bn.peer(0), bn.a.ring
	var r results
	for range 40 {
		bn.a.ring = own
		bn.send(p, &r, pattern(1400, 1), 0, 0)
		bn.a.ring = ring
		bn.send(q, &r, pattern(1400, 1), 0, 0)
	}
	for i := range 40 {
		bn.post(1400, 0, i)
		bn.until(func() bool { return len(a.list) == i+1 })
	}
	from := map[uint16]int{}
	for _, d := range a.list {
		from[d.From.Endpoint]++
	}
	if from[0] < 15 || from[9] < 15 {
		t.Errorf("of 40 receives the two senders got %v, want about as many each", from)
	}
}

// A message that stops in its middle gives its receive back after the receiver's give-up
// time, to one that came meanwhile. Its sender, which lives and would wait for
// longer, learns that it was not executed, and goes on in another session; a watch of the
// receiver does not end.
func TestMessageStalls(t *testing.T) {
	bn, a := receiving(t, 1, session.Config{GiveUp: time.Second}, 1<<20)
	bn.a = bn.node(bn.a.port, macA, session.Config{GiveUp: time.Hour, Features: wire.FeatureMessages})
	p := bn.peer(0)
	var watch, long, next results
	w := bn.a.ring.Claim()
	w.Peer, w.Context, w.Verb, w.Count, w.Flags = p.ID(), &watch, engine.VerbWatch, 0, 0
	w.Publish()
	got := bn.post(1<<20, 0, "only")
	bn.send(p, &long, pattern(1<<20, 1), 0, 0)
	bn.until(func() bool { return bn.b.inbox.Usage().Filling == 1 })
	bn.a.port.SetFaults(port.Faults{Loss: 1})
	other := bn.b.inbox.NewInflow(wire.Addr{MAC: wire.MAC{2, 9}})
	m := wire.Message{Begins: true, Length: 5}
	other.Begin()
	if other.Admit(&m) {
		other.Put([]byte("hello"))
	}
	other.End()
	since := bn.now
	bn.until(func() bool { return len(a.list) == 1 })
	if took := time.Duration(bn.now - since); took > 2*time.Second || string(got[:5]) != "hello" {
		t.Errorf("the message of another sender came after %v: %q", took, got[:5])
	}
	bn.a.port.SetFaults(port.Faults{})
	bn.post(100, 0, "next")
	bn.send(p, &next, pattern(100, 2), 0, 0)
	bn.until(func() bool { return next.n == 1 })
	if long.n != 1 || long.last.Outcome != engine.NotExecuted || next.last.Outcome != engine.Success || len(a.list) != 2 || watch.n > 0 {
		t.Errorf("the message that stopped: %+v, the next one: %+v, the watch: %+v, received %+v", long, next, watch, a.list)
	}
	if n := bn.b.Usage().Sessions; n != 1 {
		t.Errorf("%d sessions at the target, want 1", n)
	}
	other.Close()
	bn.check()
}

// A message that stops because another session has taken the place of its own is not one
// that has stalled.
func TestMessageOfAFormerSession(t *testing.T) {
	const giveUp = 10 * time.Second // of the target
	bn, _ := receiving(t, 1, session.Config{GiveUp: giveUp}, 1<<20)
	bn.a = bn.node(bn.a.port, macA, session.Config{GiveUp: time.Second, Features: wire.FeatureMessages})
	p := bn.peer(0)
	var long, next results
	bn.post(1<<20, 0, "only")
	bn.send(p, &long, pattern(1<<20, 1), 0, 0)
	bn.until(func() bool { return bn.b.inbox.Usage().Filling == 1 })
	bn.a.port.SetFaults(port.Faults{Loss: 1})
	bn.until(func() bool { return long.n == 1 })
	bn.a.port.SetFaults(port.Faults{})
	bn.send(p, &next, pattern(100, 2), 0, 0)
	bn.until(func() bool { return bn.b.inbox.Usage().Filling == 0 }) // the hello is there
	bn.a.port.SetFaults(port.Faults{Loss: 1})
	for until := bn.now + int64(2*giveUp); bn.now < until; {
		bn.step()
	}
	bn.b.Publish()
	if n := bn.b.Counters()[engine.MessagesStalled]; n != 0 {
		t.Errorf("%d messages have stalled, want none", n)
	}
}
