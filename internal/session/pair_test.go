// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// pair is an initiator and a target with a faulty network between them and a
// clock of its own. Requests carry a serial number; every third one is "clean"
// (no result), the others are answered with the number plus one.
type pair struct {
	t       testing.TB
	rng     *rand.Rand
	cfg     Config // the initiator's
	other   Config // the target's
	now     int64
	ini     *Initiator
	tgt     *Target
	epoch   uint32 // of tgt
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
	fresh   int // request frames sent
	pools   [3]*Pool
	verdict map[Verdict]int
	riders  bool                     // acks may ride; then few requests have results
	rode    int                      // acks that did
	busy    bool                     // answers say that they waited for the target's program
	aside   func(serial uint64) bool // a function answers the request, when the test says so; nil for none
}

type flight struct {
	at    int64
	frame []byte
}

func newPair(t testing.TB, seed uint64, cfg Config) *pair {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), cfg: cfg, other: cfg, now: 1, delay: 2000,
		posted: map[uint32]uint64{}, done: map[uint64]int{}, verdict: map[Verdict]int{},
	}
	for i := range p.pools {
		p.pools[i] = NewPool(1500, 2*MaxWindow)
	}
	p.door = NewListener([32]byte{1, 2, 3})
	p.ini = NewInitiator(&p.cfg, p.pools[0], Params{
		Local: wire.NewSessionID(1, 2, 3, 4), Lane: 5, Endpoint: 6, MaxFrame: 1500, Nonce: p.rng.Uint64(),
		Unordered: cfg.Features&wire.FeatureUnordered != 0,
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
	psn := p.ini.Commit(p.now, b, 8+p.rng.IntN(16), 1, 0)
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
		if p.riders && p.rng.IntN(2) == 0 {
			if r, ok := p.tgt.Rider(); ok {
				p.rode++
				p.send(&p.toIni, binary.LittleEndian.AppendUint32(nil, r.PSN))
			}
		}
		for n := p.tgt.Emit(b); n > 0; n = p.tgt.Emit(b) {
			p.send(&p.toIni, b[:n])
		}
	}
}

// parse reads a frame as a session has written it: its engine pads and seals it.
func parse(frame []byte) (wire.Header, []byte, wire.Reason) {
	b := append(make([]byte, 0, len(frame)+wire.MinFrame), frame...)
	return wire.Parse(b[:wire.Seal(b[:cap(b)], len(frame))])
}

func (p *pair) target(frame []byte) {
	h, payload, r := parse(frame)
	if r != wire.ReasonOK {
		p.t.Fatalf("target got a malformed frame: %v", r)
	}
	if h.Type == wire.Hello {
		p.hello(&h, payload)
		return
	}
	if p.tgt == nil || h.Epoch != p.epoch {
		return
	}
	v := p.tgt.Receive(p.now, &h, payload)
	p.verdict[v]++
	if v != Execute {
		return
	}
	p.execute(payload)
	for {
		early, _, _, ok := p.tgt.NextHeld()
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
	if p.aside != nil && p.aside(serial) {
		p.tgt.Unbuffer(b)
		p.tgt.Send()
		return
	}
	if p.busy {
		binary.LittleEndian.PutUint64(b, serial+1)
		p.tgt.Executed(b, 8, 1, wire.FlagBusy)
		return
	}
	if p.clean(serial) {
		p.tgt.Executed(b, 0, 1, 0)
		return
	}
	binary.LittleEndian.PutUint64(b, serial+1)
	p.tgt.Executed(b, 8, 1, 0)
}

// clean reports whether a request has no result.
func (p *pair) clean(serial uint64) bool {
	if p.riders {
		return serial%32 != 0
	}
	return serial%3 == 0
}

func (p *pair) hello(h *wire.Header, payload []byte) {
	var m wire.HelloMsg
	if r := m.Parse(payload); r != wire.ReasonOK {
		p.t.Fatalf("hello: %v", r)
	}
	from := []byte("client")
	b := make([]byte, 2048)
	if !p.door.Proven(p.now, &m, from) {
		n := noKey.Reply(b, &m, 5, 0, wire.HelloAckMsg{Status: wire.HelloChallenge, Cookie: p.door.Cookie(p.now, &m, from)})
		p.send(&p.toIni, b[:n])
		return
	}
	if p.tgt == nil {
		p.epoch = p.rng.Uint32()
		p.tgt = NewTarget(NewShare(p.pools[1]), NewShare(p.pools[2]), TargetParams{
			Local: wire.NewSessionID(5, 0, 9, 1), Remote: m.Session, Lane: h.Lane, Endpoint: m.Endpoint, Epoch: p.epoch,
			MaxFrame: min(1500, int(m.MaxFrame)), Window: min(p.other.Window, int(m.Window)),
			Features: m.Features & p.other.Features,
		}, p.now)
	}
	n := noKey.Reply(b, &m, 5, p.epoch, wire.HelloAckMsg{
		Status: wire.HelloAccepted, Session: uint32(p.tgt.local),
		MaxFrame: 1500, Window: uint16(p.other.Window), Features: m.Features & p.other.Features,
	})
	p.send(&p.toIni, b[:n])
}

func (p *pair) initiator(frame []byte) {
	if len(frame) == 4 { // a rider
		p.happened(p.ini.Ridden(p.now, binary.LittleEndian.Uint32(frame)), nil)
		return
	}
	h, payload, r := parse(frame)
	if r != wire.ReasonOK {
		p.t.Fatalf("initiator got a malformed frame: %v", r)
	}
	if p.tgt != nil {
		p.sound()
	}
	p.happened(p.ini.Receive(p.now, &h, payload), payload)
}

func (p *pair) happened(ev Event, payload []byte) {
	switch ev.Kind {
	case Responded:
		serial := p.posted[ev.First]
		if p.clean(serial) && len(payload) == 12 && binary.LittleEndian.Uint64(payload) == 0 { // it ran ahead, and was clean
			p.ini.Retire(p.now, ev.First)
			p.done[serial]++
			break
		}
		if got := binary.LittleEndian.Uint64(payload); got != serial+1 {
			p.t.Fatalf("psn %d: answer %d, want %d", ev.First, got, serial+1)
		}
		p.ini.Retire(p.now, ev.First)
		p.done[serial]++
	case Succeeded:
		for psn := ev.First; psn != ev.Last+1; psn++ {
			if p.ini.Retire(p.now, psn) {
				if s := p.posted[psn]; !p.clean(s) {
					p.t.Fatalf("serial %d has a result, but was acknowledged without", s)
				}
				p.done[p.posted[psn]]++
			}
		}
	}
	p.events = append(p.events, ev)
}

// sound fails the test if either side contradicts itself.
func (p *pair) sound() {
	p.t.Helper()
	if err := errors.Join(p.tgt.Check(), p.ini.Check()); err != nil {
		p.t.Fatal(err)
	}
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
	ran := slices.Clone(p.ran)
	if p.tgt.anyOrder {
		slices.Sort(ran)
	}
	for i, s := range ran {
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

// noKey is the key of endpoints that have none.
var noKey *Key
