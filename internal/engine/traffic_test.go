// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"reflect"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// sessionsOf returns what an engine tells of its sessions, in steps of few places.
func sessionsOf(t *testing.T, e *Engine) (all []SessionInfo) {
	t.Helper()
	for from, steps := 0, 0; ; steps++ {
		if all, from = e.Sessions(all, from, 100); from == 0 {
			return all
		}
		if steps > wire.MaxSessions/100 {
			t.Fatalf("Sessions goes on for ever: next place %d", from)
		}
	}
}

// one returns the only session that an engine has.
func one(t *testing.T, e *Engine) SessionInfo {
	t.Helper()
	all := sessionsOf(t, e)
	if len(all) != 1 {
		t.Fatalf("%d sessions, want 1: %+v", len(all), all)
	}
	return all[0]
}

// Both ends of a session agree on what it has carried, whatever gets lost, and the counts
// of a peer outlast its sessions.
func TestTraffic(t *testing.T) {
	t.Parallel()
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	requests, answers := 0, 0
	c.pass = func(to int, packet []byte) bool {
		frame, _ := wire.Strip(packet, worldMACs[to], false)
		switch h, _, _ := wire.Parse(frame); h.Type {
		case wire.Request:
			requests++
			return requests%5 != 0
		case wire.Response, wire.Ack:
			answers++
			return answers%7 != 0
		}
		return true
	}
	const rounds = 50
	for range rounds {
		c.write(p, 1, 7)
	}
	from, to := one(t, c.nodes[0].eng[0]), one(t, c.nodes[1].eng[0])
	if from.Ops != rounds || to.Ops != rounds || from.Frames != rounds || to.Frames != rounds {
		t.Errorf("the initiator counts %d operations in %d frames, the target %d in %d; want %d of all",
			from.Ops, from.Frames, to.Ops, to.Frames, rounds)
	}
	engines := c.nodes[0].eng[0].count
	if from.FramesResent == 0 || from.FramesResent != engines[FramesResent] || to.FramesResent != 0 {
		t.Errorf("frames sent again: %d and %d, the engine's counter says %d; want the initiator's alone",
			from.FramesResent, to.FramesResent, engines[FramesResent])
	}
	again := c.nodes[1].eng[0].count[verdictBase+Counter(session.Duplicate)]
	if to.AnswersResent == 0 || to.AnswersResent != again || from.AnswersResent != 0 {
		t.Errorf("answers given again: %d and %d, the engine's counter says %d; want the target's alone",
			to.AnswersResent, from.AnswersResent, again)
	}
	var packets, bytes int
	for _, b := range c.seen[1] {
		packets, bytes = packets+1, bytes+len(b)
	}
	if from.PacketsSent != uint64(packets) || from.BytesSent != uint64(bytes) {
		t.Errorf("the initiator counts %d packets of %d bytes; it sent %d of %d", from.PacketsSent, from.BytesSent, packets, bytes)
	}
	if to.PacketsReceived >= from.PacketsSent || to.PacketsReceived < rounds || to.BytesReceived >= from.BytesSent {
		t.Errorf("the target received %d packets of %d that were sent, some of which got lost", to.PacketsReceived, from.PacketsSent)
	}
	if to.PacketsSent < rounds || from.PacketsReceived >= uint64(len(c.seen[0])) || from.PacketsReceived < rounds {
		t.Errorf("the target sent %d packets, and the initiator received %d", to.PacketsSent, from.PacketsReceived)
	}
	if from.Accepted || !to.Accepted || from.State != "open" || to.State != "open" || from.RTT <= 0 ||
		from.Origin != to.Origin || from.Peer.MAC != worldMACs[1] || to.Peer.MAC != worldMACs[0] {
		t.Errorf("the initiator says %+v, the target %+v", from, to)
	}

	c.pass = nil
	for len(sessionsOf(t, c.nodes[0].eng[0])) > 0 { // it closes the session for want of work
		c.step()
	}
	c.write(p, 1, 7)
	from, to = one(t, c.nodes[0].eng[0]), one(t, c.nodes[1].eng[0])
	if from.Sessions != 2 || from.Ops != rounds+1 || to.Sessions != 2 || to.Ops != rounds+1 {
		t.Errorf("after the second session the initiator counts %d sessions and %d operations, the target %d and %d; want 2 and %d",
			from.Sessions, from.Ops, to.Sessions, to.Ops, rounds+1)
	}
}

// A session with a silent target says so, and its peer's counts are in one row.
func TestTrafficOfSuspended(t *testing.T) {
	t.Parallel()
	c := newCable(t, session.Config{GiveUp: time.Second})
	p := c.peer(udp())
	c.write(p, 1, 7)
	c.pass = func(int, []byte) bool { return false }
	c.done(c.post(p, 1, 8))
	ops := uint64(0)
	states := map[string]int{}
	for _, s := range sessionsOf(t, c.nodes[0].eng[0]) {
		states[s.State]++
		ops += s.Ops
		if s.Peer.IP != cableIPs[1] || s.Peer.MAC != (wire.MAC{}) {
			t.Errorf("peer %v, want %v", s.Peer, cableIPs[1])
		}
	}
	if states["suspended"] != 1 || ops != 2 {
		t.Errorf("states %v with %d operations, want a suspended one, and 2", states, ops)
	}
}

// A field that add forgets is lost whenever a session ends.
func TestTrafficAddsEveryField(t *testing.T) {
	var sum, x Traffic
	of := reflect.ValueOf(&x).Elem()
	for i := range of.NumField() {
		of.Field(i).SetUint(uint64(i + 1))
	}
	sum.add(&x)
	sum.add(&x)
	for i := range of.NumField() {
		if got, want := reflect.ValueOf(sum).Field(i).Uint(), uint64(2*(i+1)); got != want {
			t.Errorf("%s: %d, want %d", of.Type().Field(i).Name, got, want)
		}
	}
}
