// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A driver drops all that the program sends. Every operation succeeds, once: the first
// ones when they are sent again, and the others at once, as user space answers. When
// the program's answers get out again, it answers again.
func TestAnswersLost(t *testing.T) {
	w := newWorld(t, 1)
	lost := make(chan struct{}, 8)
	w.x.OnLoss(func() { lost <- struct{}{} })
	p, err := w.a.NewPeer(wire.Link{Local: macs[0], Remote: macs[1]}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var o outcomes
	n := 0
	add := func() (took time.Duration) {
		t.Helper()
		began, result := w.now, make([]byte, 8)
		w.add(p, &o, residentKey, 0, atomic.Uint64, result)
		w.until(func() bool { return o.n > n })
		if got := binary.LittleEndian.Uint64(result); got != uint64(n) || o.bad != 0 {
			t.Fatalf("fetched %d, want %d; %d failed, the last %+v", got, n, o.bad, o.last)
		}
		n++
		return time.Duration(w.now - began)
	}
	w.nic.mute = true
	for range lossesInRow {
		add()
	}
	sent := w.nic.sent
	for range 100 {
		if took := add(); took >= 10*time.Millisecond { // a timeout of the initiator
			t.Fatalf("operation %d took %v, though user space should answer", n, took)
		}
	}
	if w.nic.sent != sent {
		t.Errorf("the program sent %d answers while user space relays", w.nic.sent-sent)
	}
	<-lost
	if tally, err := w.x.Tally(); err != nil || tally.Lost != lossesInRow || tally.Relayed != 1 || tally.Frames[Relayed] < 100 {
		t.Errorf("%v; lost %d, relayed %d, frames %d; want %d, 1 and 100", err, tally.Lost, tally.Relayed, tally.Frames[Relayed], lossesInRow)
	}
	pass := func() { // in steps, as an engine that was stopped does not count the time
		for range 11 {
			w.now += int64(time.Second)
			w.step()
		}
	}
	pass() // the program tries again, and one answer is lost
	sent = w.nic.sent
	for range 10 {
		add()
	}
	if w.nic.sent != sent+1 {
		t.Errorf("the program tried %d times, want once", w.nic.sent-sent)
	}
	pass()
	w.nic.mute, sent = false, w.nic.sent
	for range 10 {
		add()
	}
	if w.nic.sent < sent+9 {
		t.Errorf("the program sent %d answers, want all but the first", w.nic.sent-sent)
	}
	if len(lost) > 0 {
		t.Error("told twice")
	}
}

// An initiator that acknowledges what has never run does no harm, whatever it has had
// user space believe of losses.
func TestLossesOfALiar(t *testing.T) {
	w := newWorld(t, 1)
	p, err := w.a.NewPeer(wire.Link{Local: macs[0], Remote: macs[1]}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var o outcomes
	w.nic.mute = true
	for n := range lossesInRow + 2 { // user space relays
		w.add(p, &o, residentKey, 0, atomic.Uint64, nil)
		w.until(func() bool { return o.n > n })
	}
	there, err := wire.NewTemplate(wire.Link{Local: macs[0], Remote: macs[1]})
	if err != nil {
		t.Fatal(err)
	}
	lie := func(ahead uint32) {
		for _, s := range w.x.live {
			now := s.state
			h := wire.Header{Type: wire.Probe, Session: uint32(s.p.Local), Epoch: s.p.Epoch, PSN: 1, Ack: now.expected() - 1 + ahead}
			b := w.pa.Buffer()
			h.Put(b[there.Len():])
			w.pa.Send(there.Put(b, wire.Seal(b[there.Len():], wire.HeaderLen)))
		}
		w.step()
	}
	for _, ahead := range []uint32{1, window, window + 1, 1000, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		lie(ahead)
		for range 11 { // the program may try again
			w.now += int64(time.Second)
			w.step()
		}
		lie(ahead)
	}
	n := o.n
	w.add(p, &o, residentKey, 0, atomic.Uint64, nil)
	w.until(func() bool { return o.n > n })
	if o.bad != 0 {
		t.Errorf("%d operations failed, the last %+v", o.bad, o.last)
	}
}

// A lost frame now and then is no reason to relay, though many are in flight: other
// answers of the program arrive.
func TestSomeAnswersLost(t *testing.T) {
	w := newWorld(t, 1)
	p, err := w.a.NewPeer(wire.Link{Local: macs[0], Remote: macs[1]}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.pa.SetFaults(port.Faults{Loss: 0.03})
	w.nic.SetFaults(port.Faults{Loss: 0.03})
	w.exactlyOnce(p, false)
	tally, err := w.x.Tally()
	if err != nil || tally.Relayed != 0 || tally.Lost == 0 {
		t.Errorf("%v; lost %d, relayed %d; want some, and 0", err, tally.Lost, tally.Relayed)
	}
}

// A process that does not look at its frames, as one that is stopped, keeps nobody from
// an answer: the program gives it itself when it is asked the next time.
func TestAnswersLostWhileStopped(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500, sockets: true})
	s := w.state()
	w.send(fetchAdd(&s, 0))
	again := fetchAdd(&s, wire.FlagRetx)
	for i, want := range []uint32{xdpRedirect, xdpTX, xdpRedirect, xdpTX} {
		if action, _ := w.run(again); action != want {
			t.Errorf("time %d: action %d, want %d", i, action, want)
		}
	}
	w.run(again) // user space looks at it, and gets the next one, too
	if v, answer, err := w.c.call(callReceive, s.Id, 0, again); v != Duplicate || len(answer) == 0 || err != nil {
		t.Fatal(v, err)
	}
	if action, _ := w.run(again); action != xdpRedirect {
		t.Errorf("action %d, want another frame for user space", action)
	}
}

// fetchAdd returns the frame of a fetch-add whose turn is next.
func fetchAdd(s *executorSession, flags uint8) []byte {
	b := make([]byte, 1500)
	var rw wire.RecordWriter
	rw.Reset(b[wire.HeaderLen:], 1400)
	rw.Append(&wire.Record{Verb: wire.VerbFetch, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Key: twinRegions[0].key, Count: 1, Operand: []byte{1, 0, 0, 0, 0, 0, 0, 0}})
	h := wire.Header{Type: wire.Request, Flags: flags, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Expected - 1, Ops: uint8(rw.Ops())}
	h.Put(b)
	return b[:wire.Seal(b, wire.HeaderLen+rw.Len())]
}
