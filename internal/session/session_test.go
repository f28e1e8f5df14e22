// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// pair is an initiator and a target with a faulty network between them and a
// clock of its own. Requests carry a serial number; every third one is "clean"
// (no result), the others are answered with the number plus one.
type pair struct {
	t       testing.TB
	rng     *rand.Rand
	cfg     Config
	now     int64
	ini     *Initiator
	tgt     *Target
	door    *Listener
	toTgt   []flight
	toIni   []flight
	loss    float64
	dup     float64
	jitter  int64 // ns added at random
	delay   int64
	posted  map[uint32]uint64 // psn -> serial
	ran     []uint64
	done    map[uint64]int
	serial  uint64
	events  []Event
	fresh   int // sends of request frames
	pools   [3]*Pool
	verdict map[Verdict]int
}

type flight struct {
	at    int64
	frame []byte
}

func newPair(t testing.TB, seed uint64, cfg Config) *pair {
	cfg = cfg.WithDefaults()
	p := &pair{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), cfg: cfg, now: 1, delay: 2000,
		posted: map[uint32]uint64{}, done: map[uint64]int{}, verdict: map[Verdict]int{},
	}
	for i := range p.pools {
		p.pools[i] = NewPool(1500, 2*MaxWindow)
	}
	p.door = NewListener([32]byte{1, 2, 3})
	p.ini = NewInitiator(&p.cfg, p.pools[0], Params{
		Local: wire.NewSessionID(1, 2, 3, 4), Lane: 5, Endpoint: 6, MaxFrame: 1500, Nonce: p.rng.Uint64(),
	}, p.now)
	return p
}

func (p *pair) send(q *[]flight, frame []byte) {
	copies := 1
	if p.rng.Float64() < p.dup {
		copies += 1 + p.rng.IntN(3)
	}
	for range copies {
		if p.rng.Float64() < p.loss {
			continue
		}
		at := p.now + p.delay
		if p.jitter > 0 {
			at += p.rng.Int64N(p.jitter)
		}
		*q = append(*q, flight{at, slices.Clone(frame)})
	}
	slices.SortStableFunc(*q, func(a, b flight) int { return int(a.at - b.at) })
}

func (p *pair) post() bool {
	b := p.ini.Stage()
	if b == nil {
		return false
	}
	binary.LittleEndian.PutUint64(b, p.serial)
	psn := p.ini.Commit(p.now, b, 8+p.rng.IntN(16), 1)
	p.posted[psn] = p.serial
	p.serial++
	return true
}

func (p *pair) emit() {
	b := make([]byte, 2048)
	for n := p.ini.Emit(p.now, b); n > 0; n = p.ini.Emit(p.now, b) {
		if wire.Type(b[0]&15) == wire.Request {
			p.fresh++
		}
		p.send(&p.toTgt, b[:n])
	}
	if p.tgt != nil {
		for n := p.tgt.Emit(b); n > 0; n = p.tgt.Emit(b) {
			p.send(&p.toIni, b[:n])
		}
	}
}

func (p *pair) target(frame []byte) {
	h, payload, r := wire.Parse(frame)
	if r != wire.ReasonOK {
		p.t.Fatalf("target got a malformed frame: %v", r)
	}
	if h.Type == wire.Hello {
		p.hello(&h, payload)
		return
	}
	if p.tgt == nil || h.Epoch != p.tgt.Epoch() {
		return
	}
	v := p.tgt.Receive(p.now, &h, payload)
	p.verdict[v]++
	if v != Execute {
		return
	}
	p.execute(payload)
	for {
		early, _, ok := p.tgt.NextHeld()
		if !ok {
			return
		}
		p.execute(early)
	}
}

func (p *pair) execute(payload []byte) {
	b := p.tgt.Buffer()
	if b == nil {
		p.t.Fatal("answer pool exhausted")
	}
	serial := binary.LittleEndian.Uint64(payload)
	p.ran = append(p.ran, serial)
	if serial%3 == 0 {
		p.tgt.Executed(b, 0, 1, 0)
		return
	}
	binary.LittleEndian.PutUint64(b, serial+1)
	p.tgt.Executed(b, 8, 1, 0)
}

func (p *pair) hello(h *wire.Header, payload []byte) {
	var m wire.HelloMsg
	if r := m.Parse(payload); r != wire.ReasonOK {
		p.t.Fatalf("hello: %v", r)
	}
	from := []byte("client")
	b := make([]byte, 2048)
	if !p.door.Proven(p.now, &m, from) {
		n := Reply(b, &m, 5, 0, wire.HelloAckMsg{Status: wire.HelloChallenge, Cookie: p.door.Cookie(p.now, &m, from)})
		p.send(&p.toIni, b[:n])
		return
	}
	if p.tgt == nil {
		p.tgt = NewTarget(&p.cfg, p.pools[1], p.pools[2], TargetParams{
			Local: wire.NewSessionID(5, 0, 9, 1), Hello: m, MaxFrame: 1500, Lane: h.Lane, Epoch: p.rng.Uint32(),
		}, p.now)
	}
	n := Reply(b, &m, 5, p.tgt.Epoch(), wire.HelloAckMsg{
		Status: wire.HelloAccepted, Session: uint32(p.tgt.local),
		MaxFrame: 1500, Window: uint16(p.cfg.Window),
	})
	p.send(&p.toIni, b[:n])
}

func (p *pair) initiator(frame []byte) {
	h, payload, r := wire.Parse(frame)
	if r != wire.ReasonOK {
		p.t.Fatalf("initiator got a malformed frame: %v", r)
	}
	ev := p.ini.Receive(p.now, &h, payload)
	switch ev.Kind {
	case Responded:
		serial := p.posted[ev.First]
		if got := binary.LittleEndian.Uint64(payload); got != serial+1 {
			p.t.Fatalf("psn %d: answer %d, want %d", ev.First, got, serial+1)
		}
		p.ini.Retire(p.now, ev.First)
		p.done[serial]++
	case Succeeded:
		for psn := ev.First; psn != ev.Last+1; psn++ {
			if p.ini.Retire(p.now, psn) {
				if s := p.posted[psn]; s%3 != 0 {
					p.t.Fatalf("serial %d has a result, but was acknowledged without", s)
				}
				p.done[p.posted[psn]]++
			}
		}
	}
	p.events = append(p.events, ev)
}

// step delivers everything due, lets both sides send, and moves the clock to
// the next event. It returns false when nothing will ever happen again.
func (p *pair) step() bool {
	p.emit()
	next := int64(1 << 62)
	for _, q := range []*[]flight{&p.toTgt, &p.toIni} {
		if len(*q) > 0 {
			next = min(next, (*q)[0].at)
		}
	}
	if d := p.ini.Deadline(); d != 0 {
		next = min(next, d)
	}
	if next == 1<<62 {
		return false
	}
	p.now = max(p.now, next)
	for len(p.toTgt) > 0 && p.toTgt[0].at <= p.now {
		f := p.toTgt[0]
		p.toTgt = p.toTgt[1:]
		p.target(f.frame)
	}
	for len(p.toIni) > 0 && p.toIni[0].at <= p.now {
		f := p.toIni[0]
		p.toIni = p.toIni[1:]
		p.initiator(f.frame)
	}
	p.events = append(p.events, p.ini.Tick(p.now))
	return true
}

func (p *pair) open() {
	p.t.Helper()
	for range 1000 {
		if st, _ := p.ini.State(); st == Open {
			return
		}
		p.step()
	}
	p.t.Fatal("session did not open")
}

// run posts n requests, as fast as the window allows, and drains them.
func (p *pair) run(n int) {
	p.t.Helper()
	for steps := 0; ; steps++ {
		for int(p.serial) < n && p.post() {
		}
		if len(p.done) == n {
			return
		}
		if st, why := p.ini.State(); st == Closed {
			p.t.Fatalf("closed: %v", why)
		}
		if steps > 400*n+10000 || !p.step() {
			p.t.Fatalf("stuck after %d steps: %d of %d done, window %#x", steps, len(p.done), n, p.ini.wait)
		}
	}
}

func (p *pair) check(n int) {
	p.t.Helper()
	if len(p.ran) != n {
		p.t.Fatalf("%d requests ran, want %d", len(p.ran), n)
	}
	for i, s := range p.ran {
		if s != uint64(i) {
			p.t.Fatalf("position %d ran request %d: order or count broken", i, s)
		}
	}
	for s, k := range p.done {
		if k != 1 {
			p.t.Fatalf("request %d completed %d times", s, k)
		}
	}
}

func TestExactlyOnceUnderFaults(t *testing.T) {
	faults := []struct {
		loss, dup float64
		jitter    int64
	}{
		{0, 0, 0}, {0.1, 0, 0}, {0, 0.5, 0}, {0, 0, 50_000}, {0.3, 0.5, 50_000}, {0.05, 0.05, 5_000_000},
	}
	for _, f := range faults {
		t.Run(fmt.Sprintf("loss%v/dup%v/jitter%v", f.loss, f.dup, time.Duration(f.jitter)), func(t *testing.T) {
			seeds := uint64(40)
			if testing.Short() {
				seeds = 8
			}
			for seed := range seeds {
				p := newPair(t, seed, Config{Window: 1 << (seed % 7), GiveUp: time.Hour})
				p.loss, p.dup, p.jitter = f.loss, f.dup, f.jitter
				p.open()
				p.run(300)
				p.check(300)
				for range 200 { // let duplicates and acks arrive
					p.step()
				}
				p.check(300)
				if lent := p.pools[0].Lent(); lent != 0 {
					t.Fatalf("seed %d: %d request buffers leaked", seed, lent)
				}
			}
		})
	}
}

// Without faults nothing is sent twice, and the cache is free soon after.
func TestNoFaultNoResend(t *testing.T) {
	p := newPair(t, 1, Config{})
	p.open()
	p.run(1000)
	p.check(1000)
	if p.ini.Resent != 0 || p.fresh != 1000 {
		t.Errorf("%d frames sent for 1000 requests, %d resent", p.fresh, p.ini.Resent)
	}
	for p.now < int64(time.Second) && p.step() {
	}
	if lent := p.pools[1].Lent() + p.pools[2].Lent(); lent != 0 {
		t.Errorf("%d buffers still cached a second after the last answer", lent)
	}
}

// One lost frame is repaired by the sack, one round trip later: no timeout.
func TestLostFrameRepairedBySack(t *testing.T) {
	for _, lost := range []string{"request", "response"} {
		t.Run(lost, func(t *testing.T) {
			p := newPair(t, 1, Config{})
			p.open()
			start := p.now
			for range 8 {
				p.post()
			}
			p.emit()
			if lost == "request" {
				p.toTgt = slices.Delete(p.toTgt, 2, 3)
			} else {
				p.step()
				p.emit()
				p.toIni = slices.Delete(p.toIni, 1, 2)
			}
			p.run(8)
			p.check(8)
			if took := p.now - start; took > 5*p.delay {
				t.Errorf("took %v, want at most 2 round trips of %v", time.Duration(took), time.Duration(2*p.delay))
			}
			if p.ini.Resent != 1 {
				t.Errorf("%d frames resent, want 1", p.ini.Resent)
			}
		})
	}
}

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
	fates := map[uint32]Fate{}
	p.ini.Unanswered(func(psn uint32, f Fate) { fates[psn] = f })
	want := map[uint32]Fate{first: MayHaveRun, first + 1: MayHaveRun, last: NeverRan}
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
	for ran := range 4 { // how many of three requests reach the target
		for arrives := range ran + 1 { // how many answers arrive
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
			if executed != first+uint32(ran)-1 {
				t.Fatalf("target ran up to %d, want %d", executed-first, ran-1)
			}
			never := 0
			p.ini.Settle(p.now, executed, func(psn uint32) {
				if psn-first < uint32(ran) {
					t.Errorf("request %d ran, but is said to have not", psn-first)
				}
				never++
			})
			p.loss = 0
			for st, why := p.ini.State(); st != Closed || why != Settled; st, why = p.ini.State() {
				if !p.step() {
					t.Fatalf("stuck in state %v with %#x", st, p.ini.wait)
				}
			}
			if len(p.done) != 5+ran || never != 3-ran || p.pools[0].Lent() != 0 {
				t.Errorf("%d answered, %d never ran, %d buffers kept: want %d, %d, 0", len(p.done), never, p.pools[0].Lent(), 5+ran, 3-ran)
			}
			h := wire.Header{Type: wire.Request, Epoch: p.ini.epoch, PSN: executed + 1, Ack: executed, Ops: 1}
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

// A target that shuts down names the first psn that never ran; what a restarted
// target answers leaves the outcome open.
func TestResetFates(t *testing.T) {
	cases := []struct {
		name     string
		reset    func(p *pair, b []byte) int
		why      Reason
		ran, not Fate
	}{
		{"shutdown", func(p *pair, b []byte) int {
			p.tgt.toSend = 0
			p.tgt.Shutdown(wire.ResetShuttingDown)
			return p.tgt.Emit(b)
		}, PeerClosed, MayHaveRun, NeverRan},
		{"restart", func(p *pair, b []byte) int {
			h := wire.Header{Type: wire.Request, Session: p.ini.remote, Epoch: p.ini.epoch, PSN: p.ini.una}
			return Strange(b, &h, 5, wire.ResetUnknownSession)
		}, PeerRestarted, LostToCrash, LostToCrash},
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
			if st, why := p.ini.State(); st != Closed || why != c.why {
				t.Fatalf("state %v, reason %v", st, why)
			}
			p.ini.Unanswered(func(psn uint32, f Fate) {
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

func TestForeignFramesAreRefused(t *testing.T) {
	p := newPair(t, 5, Config{})
	p.open()
	p.post()
	p.emit()
	bad := []struct {
		name string
		h    wire.Header
	}{
		{"stale epoch", wire.Header{Type: wire.Response, Epoch: p.ini.epoch + 1, PSN: p.ini.una, Ack: p.ini.una}},
		{"ack of the unsent", wire.Header{Type: wire.Ack, Epoch: p.ini.epoch, PSN: p.ini.una, Ack: p.ini.next}},
		{"ack from the distant past", wire.Header{Type: wire.Ack, Epoch: p.ini.epoch, PSN: p.ini.una, Ack: p.ini.una - 1000}},
		{"request to an initiator", wire.Header{Type: wire.Request, Epoch: p.ini.epoch, Ack: p.ini.una}},
	}
	for _, c := range bad {
		if ev := p.ini.Receive(p.now, &c.h, nil); ev.Kind != Refused {
			t.Errorf("%s: %v, want refused", c.name, ev.Kind)
		}
	}
	tgt := []struct {
		name string
		h    wire.Header
		want Verdict
	}{
		{"ack of what has not run", wire.Header{Type: wire.Request, PSN: p.tgt.expected, Ack: p.tgt.expected}, Invalid},
		{"far ahead", wire.Header{Type: wire.Request, PSN: p.tgt.expected + MaxWindow, Ack: p.tgt.expected - 1}, OutOfWindow},
		{"long ago", wire.Header{Type: wire.Request, PSN: p.tgt.expected - 1, Ack: p.tgt.expected - 1}, Stale},
		{"response to a target", wire.Header{Type: wire.Response, PSN: p.tgt.expected, Ack: p.tgt.expected - 1}, Invalid},
	}
	for _, c := range tgt {
		if v := p.tgt.Receive(p.now, &c.h, nil); v != c.want {
			t.Errorf("%s: verdict %v, want %v", c.name, v, c.want)
		}
	}
	if len(p.ran) != 0 {
		t.Error("something ran")
	}
}

// A frame that is held, but runs when it arrives again because there was no answer
// buffer in between, is not held any more: its slot belongs to a later psn.
func TestHeldFrameThatArrivesAgain(t *testing.T) {
	p := newPair(t, 5, Config{})
	p.open()
	first := p.tgt.expected
	request := func(psn uint32) Verdict {
		h := wire.Header{Type: wire.Request, PSN: psn, Ack: p.tgt.freed, Ops: 1}
		return p.tgt.Receive(p.now, &h, make([]byte, 8))
	}
	if v := request(first + 1); v != Held {
		t.Fatalf("early frame: %v", v)
	}
	if v := request(first); v != Execute {
		t.Fatalf("expected frame: %v", v)
	}
	p.tgt.Executed(p.tgt.Buffer(), 0, 1, 0)
	// No answer buffer now: the held frame stays where it is, and comes again.
	if v := request(first + 1); v != Execute {
		t.Fatalf("held frame that arrives again: %v", v)
	}
	p.tgt.Executed(p.tgt.Buffer(), 0, 1, 0)
	if _, _, ok := p.tgt.NextHeld(); ok || p.tgt.heldMask != 0 || p.pools[2].Lent() != 0 {
		t.Errorf("still held: mask %#x, %d buffers", p.tgt.heldMask, p.pools[2].Lent())
	}
}

func TestCookieIsBoundToTheHello(t *testing.T) {
	l := NewListener([32]byte{9})
	m := wire.HelloMsg{Nonce: 1, Session: 2, Endpoint: 3}
	m.Cookie = l.Cookie(5e9, &m, []byte("a"))
	other := m
	other.Nonce++
	switch {
	case !l.Proven(5e9, &m, []byte("a")):
		t.Error("own cookie refused")
	case !l.Proven(15e9, &m, []byte("a")):
		t.Error("cookie of the previous period refused")
	case l.Proven(35e9, &m, []byte("a")):
		t.Error("expired cookie accepted")
	case l.Proven(5e9, &m, []byte("b")):
		t.Error("cookie accepted from another address")
	case l.Proven(5e9, &other, []byte("a")):
		t.Error("cookie accepted for another nonce")
	case l.Proven(5e9, &wire.HelloMsg{}, []byte("a")):
		t.Error("no cookie accepted")
	}
}

// Steady state: one request and its answer through both machines.
func exchange(p *pair, b []byte) {
	buf := p.ini.Stage()
	psn := p.ini.Commit(p.now, buf, 24, 1)
	n := p.ini.Emit(p.now, b)
	h, payload, _ := wire.Parse(b[:n])
	p.tgt.Receive(p.now, &h, payload)
	p.tgt.Executed(p.tgt.Buffer(), 8, 1, 0)
	n = p.tgt.Emit(b)
	h, payload, _ = wire.Parse(b[:n])
	p.ini.Receive(p.now, &h, payload)
	p.ini.Retire(p.now, psn)
}

func TestExchangeDoesNotAllocate(t *testing.T) {
	p := newPair(t, 1, Config{})
	p.open()
	b := make([]byte, 2048)
	exchange(p, b)
	if n := testing.AllocsPerRun(1000, func() { exchange(p, b) }); n != 0 {
		t.Errorf("%v allocations per exchange, want 0", n)
	}
}

func BenchmarkExchange(b *testing.B) {
	p := newPair(b, 1, Config{})
	p.open()
	buf := make([]byte, 2048)
	b.ReportAllocs()
	for b.Loop() {
		exchange(p, buf)
	}
}
