// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// unordered is a session without order.
var unordered = Config{Features: wire.FeatureUnordered, GiveUp: time.Hour}

// A frame that is lost holds up nothing: those behind it run as they arrive and are
// answered, with results and without. When it comes at last, it alone runs.
func TestUnorderedRunsAhead(t *testing.T) {
	p := newPair(t, 1, unordered)
	p.open()
	for range 8 {
		p.post()
	}
	p.emit()
	lost := p.toTgt[2]
	p.toTgt = slices.Delete(p.toTgt, 2, 3)
	for len(p.done) < 7 && p.step() {
		p.toTgt = nil // nor does it arrive when it is sent again
	}
	if want := []uint64{0, 1, 3, 4, 5, 6, 7}; !slices.Equal(p.ran, want) || len(p.done) != 7 || p.done[2] != 0 {
		t.Fatalf("%v ran, %v are done; want %v to run, and all of them to be done", p.ran, p.done, want)
	}
	first := FirstPSN(p.epoch)
	if ran := p.tgt.Ran(); ran != (Ran{PSN: first + 1, Early: 0b11111}) {
		t.Errorf("the target says that %+v ran, want all up to %d and the five after the next", ran, first+1)
	}
	p.target(lost.frame)
	p.run(8)
	p.check(8)
	if ran := p.tgt.Ran(); ran != (Ran{PSN: first + 7}) {
		t.Errorf("the target says that %+v ran, want all up to %d", ran, first+7)
	}
}

// Each frame runs once, however often and late its copies come: before and after the gap
// before it fills, and after its answer is forgotten.
func TestUnorderedDuplicates(t *testing.T) {
	p := newPair(t, 1, unordered)
	p.open()
	for range 6 {
		p.post()
	}
	p.emit()
	frames := slices.Clone(p.toTgt)
	again := func(when string, want Verdict, which ...int) {
		t.Helper()
		for _, i := range which {
			ran := len(p.ran)
			h, payload, _ := parse(frames[i].frame)
			if v := p.tgt.Receive(p.now, &h, payload); v != want || len(p.ran) != ran {
				t.Errorf("frame %d again %s: %v, want %v", i, when, v, want)
			}
		}
	}
	p.toTgt = slices.Delete(p.toTgt, 1, 2)
	p.step()
	again("while one before it is missing", Duplicate, 0, 2, 3, 4, 5)
	p.target(frames[1].frame)
	again("when none is missing", Duplicate, 0, 1, 2, 3, 4, 5)
	p.run(6)
	for p.now < int64(time.Second) && p.step() { // the ack has arrived
	}
	again("when its answer is forgotten", Stale, 0, 1, 2, 3, 4, 5)
	p.check(6)
}

func TestUnorderedExactlyOnceUnderFaults(t *testing.T) {
	for _, f := range []struct {
		loss, dup float64
		jitter    int64
	}{{0, 0, 0}, {0.1, 0, 0}, {0, 0.5, 50_000}, {0.3, 0.5, 50_000}, {0.05, 0.05, 5_000_000}} {
		t.Run(fmt.Sprintf("loss%v/dup%v/jitter%v", f.loss, f.dup, time.Duration(f.jitter)), func(t *testing.T) {
			ahead := false
			for seed := range uint64(20) {
				cfg := unordered
				cfg.Window = 1 << (seed % 7)
				p := newPair(t, seed, cfg)
				p.loss, p.dup, p.jitter = f.loss, f.dup, f.jitter
				p.open()
				p.run(300)
				p.check(300)
				for range 200 { // let duplicates and acks arrive
					p.step()
				}
				p.check(300)
				ahead = ahead || !slices.IsSorted(p.ran)
				if lent := p.pools[0].Lent() + p.pools[2].Lent(); lent != 0 {
					t.Fatalf("seed %d: %d buffers of requests and early frames leaked", seed, lent)
				}
			}
			if faulty := f.loss+f.dup > 0; ahead != faulty {
				t.Errorf("some frame ran ahead of another: %t, want %t", ahead, faulty)
			}
		})
	}
}

// If one side does not know sessions without order, or the initiator does not want one,
// the order is kept.
func TestUnorderedIsAgreed(t *testing.T) {
	for name, from := range map[string]func(p *pair){
		"old target":    func(p *pair) { p.other.Features = 0 },
		"old initiator": func(p *pair) { p.cfg.Features = 0 },
		"not wanted":    func(p *pair) { p.ini.p.Unordered = false },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, 1, unordered)
			from(p)
			p.loss, p.jitter = 0.2, 50_000
			p.open()
			p.run(300)
			if p.tgt.anyOrder || p.ini.Features() != 0 || !slices.IsSorted(p.ran) {
				t.Errorf("without order: %t at the target, features %#x at the initiator; in order: %t",
					p.tgt.anyOrder, p.ini.Features(), slices.IsSorted(p.ran))
			}
			p.check(300)
		})
	}
}

// ranSome returns a session of which four frames were in flight when the path
// broke: those of one mask ran, and the answers to those of the other arrived.
func ranSome(t *testing.T, ran, arrived int) (p *pair, first uint32) {
	cfg := unordered
	cfg.GiveUp = time.Second
	p = newPair(t, 1, cfg)
	p.open()
	p.run(5)
	p.loss = 1
	first = p.ini.next
	var frames [4][]byte
	for i := range frames {
		p.post()
		frames[i] = make([]byte, 2048)
		frames[i] = frames[i][:p.ini.Emit(p.now, frames[i])]
	}
	for i, frame := range frames {
		if ran>>i&1 == 0 {
			continue
		}
		p.target(frame) // in spite of the broken path
		b := make([]byte, 2048)
		if n := p.tgt.Emit(b); arrived>>i&1 != 0 {
			p.initiator(b[:n])
		}
	}
	return p, first
}

// someRan calls f for all that can have become of four frames in flight.
func someRan(t *testing.T, f func(t *testing.T, ran, arrived int)) {
	for ran := range 16 {
		for arrived := range 16 {
			if arrived&^ran == 0 {
				t.Run(fmt.Sprintf("ran%04b/arrived%04b", ran, arrived), func(t *testing.T) { f(t, ran, arrived) })
			}
		}
	}
}

// After a partition that outlasted the give-up time the target says which of the frames
// ran, whatever frames are missing between them: these are answered once more, and the
// others never run.
func TestUnorderedSettles(t *testing.T) {
	someRan(t, func(t *testing.T, ran, arrived int) {
		p, first := ranSome(t, ran, arrived)
		for st, _ := p.ini.State(); st == Open; st, _ = p.ini.State() {
			p.step()
		}
		said := p.tgt.Freeze(p.now, p.ini.Identity().PSN)
		p.emit() // the answers are lost once more
		never := 0
		p.ini.Settle(p.now, p.now, said, func(psn uint32) { never |= 1 << (psn - first) })
		p.loss = 0
		for st, why := p.ini.State(); st != Closed || why != Settled; st, why = p.ini.State() {
			p.sound()
			if !p.step() || p.now > int64(time.Hour) {
				t.Fatalf("stuck in state %v with %#x", st, p.ini.wait)
			}
		}
		if never != 15&^ran || p.pools[0].Lent() != 0 {
			t.Errorf("never ran: %04b, want %04b; %d buffers kept, want none", never, 15&^ran, p.pools[0].Lent())
		}
		for i := range uint32(4) {
			if n := p.done[p.posted[first+i]]; n != ran>>i&1 {
				t.Errorf("frame %d was answered %d times, want %d", i, n, ran>>i&1)
			}
			h := wire.Header{Type: wire.Request, Epoch: p.epoch, PSN: first + i, Ack: said.PSN, Ops: 1}
			if v := p.tgt.Receive(p.now, &h, make([]byte, 8)); v != Stale && v != Duplicate {
				t.Errorf("frame %d comes late: %v, want stale or duplicate", i, v)
			}
		}
	})
}

// A target that closes says which of the frames ran. What became of their results is not
// known, but the others never ran.
func TestUnorderedResetFates(t *testing.T) {
	someRan(t, func(t *testing.T, ran, arrived int) {
		p, first := ranSome(t, ran, arrived)
		p.tgt.toSend = 0 // the answers got lost
		p.tgt.Shutdown(wire.ResetClosed)
		b := make([]byte, 2048)
		for n := p.tgt.Emit(b); n > 0; n = p.tgt.Emit(b) {
			p.initiator(b[:n])
		}
		if st, why := p.ini.State(); st != Closed || why != PeerClosed {
			t.Fatalf("state %v, reason %v", st, why)
		}
		p.ini.Unanswered(func(psn uint32, got FrameOutcome) {
			want := NeverRan
			if ran>>(psn-first)&1 != 0 {
				want = MayHaveRun
			}
			if got != want {
				t.Errorf("frame %d: fate %v, want %v", psn-first, got, want)
			}
			arrived |= 1 << (psn - first)
		})
		if arrived != 15 {
			t.Errorf("frames %04b are accounted for, want all", arrived)
		}
	})
}

// Frames that run early leave one buffer for the frame that they wait for, or nothing
// would ever be freed.
func TestUnorderedLeavesABuffer(t *testing.T) {
	p := newPair(t, 1, unordered)
	p.open()
	hoard := NewShare(p.pools[1])
	for hoard.Get() != nil { // another party leaves as much as it takes
	}
	for rest := NewShare(p.pools[1]); rest.Get() != nil; {
	}
	for p.pools[1].Get() != nil {
	}
	first := FirstPSN(p.epoch)
	request := func(psn uint32) Verdict {
		h := wire.Header{Type: wire.Request, Epoch: p.epoch, PSN: psn, Ack: first - 1, Ops: 1}
		return p.tgt.Receive(p.now, &h, make([]byte, 8))
	}
	if v := request(first + 1); v != Execute || p.tgt.Buffer() != nil {
		t.Fatalf("early: %v, and there is a buffer for its answer; want %v, and none", v, Execute)
	}
	if v := request(first); v != Execute {
		t.Fatalf("next: %v, want %v", v, Execute)
	}
	b := p.tgt.Buffer()
	if b == nil {
		t.Fatal("there is no buffer for the answer to the frame that is missing")
	}
	p.tgt.Executed(b, 8, 1, 0)
	if ran := p.tgt.Ran(); ran != (Ran{PSN: first}) {
		t.Errorf("%+v ran, want %d alone", ran, first)
	}
}
