// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestGiveUpSaysWhatIsKnown(t *testing.T) {
	p := newPair(t, 3, Config{GiveUp: time.Second})
	p.open()
	p.run(4)
	p.loss = 1
	first := p.ini.next
	p.post()
	p.post()
	p.emit()
	p.post() // committed, but the session ends before it leaves
	last := p.ini.next - 1
	p.ini.toSend = 0
	for st, _ := p.ini.State(); st != Suspended; st, _ = p.ini.State() {
		if !p.step() {
			t.Fatal("no deadline while requests wait")
		}
	}
	if _, why := p.ini.State(); why != GaveUp {
		t.Fatalf("reason %v, want %v", why, GaveUp)
	}
	fates := map[uint32]FrameOutcome{}
	p.ini.Unanswered(func(psn uint32, f FrameOutcome) { fates[psn] = f })
	want := map[uint32]FrameOutcome{first: MayHaveRun, first + 1: MayHaveRun, last: NeverRan}
	for psn, f := range want {
		if fates[psn] != f {
			t.Errorf("psn %+d: fate %d, want %d", int32(psn-first), fates[psn], f)
		}
	}
	if p.pools[0].Lent() != 0 {
		t.Error("request buffers leaked")
	}
}

// After a partition that outlasted the give-up time, a new session's hello finds
// out what became of the old one's requests: those that ran are answered from the
// cache, those that did not never will be.
func TestResumeTurnsUnknownIntoFact(t *testing.T) {
	for ran := range 4 { // requests of three that reach the target
		for arrives := range ran + 1 { // answers that arrive
			p := newPair(t, uint64(ran), Config{GiveUp: time.Second})
			p.open()
			p.run(5)
			p.loss = 1
			first := p.ini.next
			for range 3 {
				p.post()
			}
			p.emit()
			b := make([]byte, 2048)
			for i := range ran { // in spite of the partition
				h := wire.Header{Type: wire.Request, Epoch: p.ini.epoch, PSN: first + uint32(i), Ack: first - 1, Ops: 1}
				p.tgt.Receive(p.now, &h, p.ini.reqs[h.PSN&slotMask].buf[:8])
				p.execute(p.ini.reqs[h.PSN&slotMask].buf[:8])
				n := p.tgt.Emit(b)
				if i < arrives {
					p.initiator(b[:n])
				}
			}
			for st, _ := p.ini.State(); st == Open; st, _ = p.ini.State() {
				p.step()
			}
			executed := p.tgt.Freeze(p.now, p.ini.Identity().PSN)
			if executed != (Ran{PSN: first + uint32(ran) - 1}) {
				t.Fatalf("target ran up to %d, and early ones %#x; want %d, none", executed.PSN-first, executed.Early, ran-1)
			}
			never := 0
			until := p.now + 5*int64(p.cfg.GiveUp)
			p.ini.Settle(p.now, until+1, executed, func(psn uint32) {
				if psn-first < uint32(ran) {
					t.Errorf("request %d ran, but is said to have not", psn-first)
				}
				never++
			})
			for st, _ := p.ini.State(); st == Settling && p.now < until; st, _ = p.ini.State() {
				p.step() // the network fails once more
			}
			p.loss = 0
			for st, why := p.ini.State(); st != Closed || why != Settled; st, why = p.ini.State() {
				if !p.step() {
					t.Fatalf("stuck in state %v with %#x", st, p.ini.wait)
				}
			}
			if len(p.done) != 5+ran || never != 3-ran || p.pools[0].Lent() != 0 {
				t.Errorf("%d answered, %d never ran, %d buffers kept: want %d, %d, 0", len(p.done), never, p.pools[0].Lent(), 5+ran, 3-ran)
			}
			h := wire.Header{Type: wire.Request, Epoch: p.ini.epoch, PSN: executed.PSN + 1, Ack: executed.PSN, Ops: 1}
			if v := p.tgt.Receive(p.now, &h, make([]byte, 8)); v != Stale {
				t.Errorf("a late request of the old session: verdict %v, want stale", v)
			}
		}
	}
}

func TestSilentPeer(t *testing.T) {
	p := newPair(t, 3, Config{GiveUp: 300 * time.Millisecond})
	p.loss = 1
	for st, _ := p.ini.State(); st != Closed; st, _ = p.ini.State() {
		if !p.step() {
			t.Fatal("no deadline while connecting")
		}
	}
	if _, why := p.ini.State(); why != PeerSilent {
		t.Errorf("reason %v, want %v", why, PeerSilent)
	}
	if p.now > int64(400*time.Millisecond) {
		t.Errorf("gave up after %v, want 300ms", time.Duration(p.now))
	}
}

// A target that shuts down names the first psn that never ran; one that does not know
// the session leaves the outcome open, and suspends it until more is known.
func TestResetFates(t *testing.T) {
	cases := []struct {
		name     string
		reset    func(p *pair, b []byte) int
		state    State
		why      Reason
		ran, not FrameOutcome
	}{
		{"shutdown", func(p *pair, b []byte) int {
			p.tgt.toSend = 0
			p.tgt.Shutdown(wire.ResetShuttingDown)
			return p.tgt.Emit(b)
		}, Closed, PeerClosed, MayHaveRun, NeverRan},
		{"unknown session", func(p *pair, b []byte) int {
			h := wire.Header{Type: wire.Request, Session: p.ini.remote, Epoch: p.ini.epoch, PSN: p.ini.una}
			return Strange(b, &h, 5, wire.ResetUnknownSession)
		}, Suspended, Forgotten, MayHaveRun, MayHaveRun},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, 9, Config{})
			p.open()
			first := p.ini.next
			for range 3 {
				p.post()
			}
			p.emit()
			p.now += p.delay
			p.target(p.toTgt[0].frame) // only the first one arrives
			b := make([]byte, 2048)
			p.initiator(b[:c.reset(p, b)])
			if st, why := p.ini.State(); st != c.state || why != c.why {
				t.Fatalf("state %v, reason %v", st, why)
			}
			p.ini.Unanswered(func(psn uint32, f FrameOutcome) {
				want := c.not
				if psn == first {
					want = c.ran
				}
				if f != want {
					t.Errorf("psn +%d: fate %d, want %d", psn-first, f, want)
				}
			})
		})
	}
}

// A silence during which this side itself did not run, because it was stopped or its
// owner did not call, is no reason to give up.
func TestOwnSilenceIsNoReasonToGiveUp(t *testing.T) {
	p := newPair(t, 3, Config{GiveUp: time.Second})
	p.open()
	p.post()
	p.emit()
	p.toTgt = nil // lost
	p.now += int64(time.Hour)
	if ev := p.ini.Tick(p.now); ev.Kind != Nothing {
		t.Fatalf("event %v after an hour's stop", ev.Kind)
	}
	p.run(1)
	if len(p.done) != 1 {
		t.Fatalf("%d requests done, want 1", len(p.done))
	}
}

// An initiator that was idle for longer than the target may remember does not use
// its session again.
func TestExpired(t *testing.T) {
	p := newPair(t, 3, Config{})
	p.open()
	p.run(1)
	if p.ini.Expired(p.now + int64(IdleClose) - 1e9) {
		t.Error("expired early")
	}
	if !p.ini.Expired(p.now + int64(time.Hour)) {
		t.Error("not expired after an hour")
	}
}

// An answer that lay in the ring while this side was stopped says nothing of the present:
// the target may have forgotten the session since.
func TestAnswerFromBeforeAPause(t *testing.T) {
	p := newPair(t, 3, Config{})
	p.open()
	p.post()
	for len(p.ran) == 0 && p.step() {
	}
	p.emit()
	answer := p.toIni[len(p.toIni)-1].frame
	p.now += int64(time.Hour)
	p.initiator(answer)
	if len(p.done) != 1 {
		t.Fatalf("%d requests done, want 1", len(p.done))
	}
	if !p.ini.Expired(p.now) {
		t.Error("not expired, though the target has heard nothing for an hour")
	}
}

// Frames that were received before do not keep a session alive, however often
// they are sent again.
func TestReplayKeepsNoSession(t *testing.T) {
	p := newPair(t, 3, Config{})
	p.open()
	p.post()
	p.post()
	p.ini.probeDue = true
	b := make([]byte, 2048)
	var capture [][]byte
	for n := p.ini.Emit(p.now, b); n > 0; n = p.ini.Emit(p.now, b) {
		capture = append(capture, slices.Clone(b[:n]))
	}
	for _, frame := range capture {
		p.target(frame)
	}
	heard := p.tgt.HeardAt()
	for range 100 {
		p.now += int64(10 * time.Second)
		for _, frame := range capture {
			p.target(frame)
		}
		for p.tgt.Emit(b) > 0 {
		}
	}
	if p.tgt.HeardAt() != heard {
		t.Errorf("%d frames sent again keep the session", len(capture))
	}
}

// A party gets its share of a pool, and one that comes later is not starved.
func TestShare(t *testing.T) {
	pool := NewPool(8, 1000)
	var took [4]int
	var shares [4]*Share
	for i := range shares {
		shares[i] = NewShare(pool)
		for shares[i].Get() != nil {
			took[i]++
		}
	}
	for i, want := range [4]int{500, 250, 125, 63} {
		if took[i] != want {
			t.Errorf("party %d got %d buffers, want %d", i, took[i], want)
		}
	}
}
