// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

const (
	burst = 64 // packets taken from the port in one step
	// timerPeriod is how often timers are looked at while anything is under way.
	timerPeriod = int64(time.Millisecond)
	// TimerBatch is the most sessions whose timers are looked at then: with thousands,
	// the rest waits for the next period. All of them each time would take a tenth of
	// the poller's time at 1000 sessions, most of it for cache misses.
	TimerBatch = 256
)

// Config says what an engine works with.
type Config struct {
	Port Port
	// Serve begins the target half of a session that has been accepted, or returns nil
	// when it has no room for one. It is called on the engine's thread. Nil is for an
	// engine that only initiates.
	Serve func(now int64, p session.TargetParams) Served
	// Accept answers the hello for an endpoint number with [wire.HelloAccepted]
	// or the status to refuse it with. It is called on the engine's thread. Nil
	// refuses all.
	Accept   func(endpoint uint16) wire.HelloStatus
	Session  session.Config
	MTU      int      // of the interface, in bytes: the largest raw frame
	Local    wire.MAC // packets to this address stay in the group
	Queue    int      // number of the queue, 0..63
	Lane     uint8
	Sessions int          // most sessions, of which peers get at most 7/8; 0 means 4096
	Buffers  int          // most payload buffers for requests in flight; 0 means 8192
	Clock    func() int64 // monotonic nanoseconds; nil means the system's
	// Life names this life of the process to peers; engines of one interface share
	// it. Zero means a random one.
	Life uint64
	// Suspect is told, on the engine's thread, that the peer at the end of a link does
	// not answer. It must not block. Nil means that nobody wants to know.
	Suspect func(wire.Link)
	// Secret is behind the cookies of a hello. Engines of one interface share it,
	// since a peer's packets may come on any queue. Zero means a random one.
	Secret [32]byte
	// Random gives 64 unpredictable bits a call, for nonces, epochs, tags and the
	// secret behind cookies; nil means the runtime's generator, which the system
	// seeds. A simulator passes one that repeats.
	Random func() uint64
}

// Engine is the poller of one queue. See the package comment for its threads.
type Engine struct {
	cfg       Config
	port      Port
	group     *Group
	now       int64
	rings     []*Ring
	lived     int64      // nanoseconds for which the engine has been running: now, less long pauses
	origin    *Origin    // of the peers that have no other
	ready     []*remote  // those with operations to pack
	limbos    []*conn    // sessions in limbo, the oldest first; some may be over
	dirty     []outgoing // sessions with frames to send
	unsettled []*target  // sessions in which something ran in this burst
	table     table
	begun     map[atTarget]*conn // sessions that a target has accepted
	pairs     *pairs
	parties   map[session.Party]*party
	sizes     []int         // by number of sessions: how many parties have so many; [0] is not kept
	most      int           // sessions of the party that has the most
	hand      int           // of table.all: the session that room looked at last
	fullUntil int64         // in lived: until then room need not look again
	accepted  int           // targets in the table
	reqs      *session.Pool // requests in flight
	packet    []byte        // at hand, if it names a session
	header    wire.Header   // of the packet at hand
	source    wire.Source   // of the packet at hand
	inbox     chan []byte
	passedOn  bool // the packet at hand came through the inbox
	sent      int  // packets that are queued without a flush, and wait for the kick
	calls     chan func()
	moves     moves
	mail      atomic.Bool // something is in the inbox or in calls, or was lately
	borrowed  bool        // packets are to be released
	record    wire.Record // scratch
	unsaid    []*Ring     // whose sinks are to be flushed
	segs      [][]segment // free lists of segments
	timerAt   int64       // when timers are next looked at
	turn      int         // of table.all: the session whose clock was looked at last
	nextDue   int64       // earliest deadline seen then; 0 = none
	idle      int         // rounds of Spin since it looked at the clock for its own sake
	skips     int         // calls of Poll to come that do without the clock
	fresh     bool        // now is the time of this round
	closing   bool
	packets   [burst][]byte
	count     counts
	shown     [numCounters]atomic.Uint64
	sleeper   sleeper
}

// New returns an engine. It owns nothing but memory: the port is the caller's.
func New(cfg Config) (*Engine, error) {
	if cfg.Port == nil {
		return nil, fmt.Errorf("engine: no port")
	}
	if cfg.Queue < 0 || cfg.Queue >= wire.MaxQueues {
		return nil, fmt.Errorf("engine: queue %d: want 0..%d", cfg.Queue, wire.MaxQueues-1)
	}
	if cfg.MTU < wire.MinMTU {
		return nil, fmt.Errorf("engine: MTU of %d bytes: want at least %d", cfg.MTU, wire.MinMTU)
	}
	if cfg.Sessions <= 0 || cfg.Sessions > wire.MaxSessions {
		cfg.Sessions = 4096
	}
	if cfg.Buffers <= 0 {
		cfg.Buffers = 8192
	}
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() int64 { return int64(time.Since(start)) + 1 }
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	cfg.Session = cfg.Session.WithDefaults()
	if cfg.Life == 0 {
		cfg.Life = cfg.Random() | 1
	}
	if cfg.Secret == [32]byte{} {
		for i := 0; i < len(cfg.Secret); i += 8 {
			binary.LittleEndian.PutUint64(cfg.Secret[i:], cfg.Random())
		}
	}
	payload := cfg.MTU - wire.HeaderLen
	e := &Engine{
		cfg: cfg, port: cfg.Port,
		pairs:   newPairs(cfg.Secret),
		begun:   make(map[atTarget]*conn),
		parties: make(map[session.Party]*party),
		sizes:   make([]int, cfg.Sessions+1),
		reqs:    session.NewPool(payload, cfg.Buffers),
		inbox:   make(chan []byte, 4*burst),
		calls:   make(chan func(), 16),
	}
	e.table.init(cfg.Lane, uint8(cfg.Queue), cfg.Sessions, cfg.Random)
	e.now = cfg.Clock()
	e.lived = e.now
	e.origin = e.NewOrigin()
	return e, nil
}

// Step makes one round and returns how much there was to do; 0 means idle.
func (e *Engine) Step() int {
	e.fresh = false
	e.look()
	return e.round()
}

// Spin is Step for a caller that calls it again at once, and came here from Step or
// Spin. It does without the clock while there is nothing but requests to answer:
// those have no need of it. A round that sends requests, or takes answers, looks.
func (e *Engine) Spin() int {
	e.fresh = false
	if e.idle++; e.idle >= clockEvery {
		e.idle = 0
		e.look()
	}
	return e.round()
}

// clockEvery is after how many rounds Spin looks at the clock whatever happens.
// That takes as long as the rest of an idle round.
const clockEvery = 16

// look sets now to the present, once a round.
func (e *Engine) look() {
	if !e.fresh {
		e.fresh = true
		e.tell()
	}
}

// tell sets now to the present. A pause that is longer than any sleep means that the
// process was stopped, or its owner did not call: peers could not be heard then, so
// for their silence it hardly counts.
func (e *Engine) tell() {
	now := e.cfg.Clock()
	e.lived += min(now-e.now, int64(session.Stalled))
	e.now = now
}

// round does everything there is to do, once.
func (e *Engine) round() int {
	work := e.receive() + e.collect()
	if e.mail.Load() {
		e.mail.Store(false) // before looking: a goroutine that leaves something sets it afterwards
		work += e.takeInbox()
		e.settle()
		work += e.takeCalls() + e.takeMoves()
	}
	if len(e.ready) > 0 {
		e.look()
		e.pack()
	}
	if e.now >= e.timerAt {
		e.someTimers()
	}
	if len(e.unsaid) > 0 {
		e.say()
	}
	if len(e.dirty) > 0 || e.sent > 0 {
		work += e.flush()
	}
	if len(e.unsettled) > 0 {
		e.settle()
	}
	if e.borrowed { // only now: the answers are on their way
		e.borrowed = false
		e.port.Release()
	}
	return work
}

// receive takes one burst from the port.
func (e *Engine) receive() int {
	n := e.port.Receive(e.packets[:])
	if n == 0 {
		return 0
	}
	for i := range n {
		e.onPacket(e.packets[i])
	}
	e.borrowed = true
	e.count[PacketsReceived] += uint64(n)
	return n
}

// takeInbox handles the packets that other engines passed on.
func (e *Engine) takeInbox() int {
	n := len(e.inbox)
	for range n {
		b := <-e.inbox
		e.passedOn = true
		e.onPacket(b)
		e.passedOn = false
		e.group.recycle(b)
	}
	return n
}

// takeCalls runs what other goroutines asked to be run on this thread.
func (e *Engine) takeCalls() int {
	n := len(e.calls)
	for range n {
		(<-e.calls)()
	}
	return n
}

// collect moves published operations from the rings to their peers' queues.
func (e *Engine) collect() int {
	work := 0
	for _, r := range e.rings {
		if r.collectable() {
			work += e.Collect(r)
		}
	}
	return work
}

// Collect moves what is published in one ring. Engine's thread only.
func (e *Engine) Collect(r *Ring) int {
	n := 0
	for ; n < len(r.cells) && r.collectable(); n++ {
		if f := r.next(); f != nil {
			e.take(f)
		}
	}
	return n
}

// pack fills request frames for the peers that have work. A peer stays in the
// list while its window is shut.
func (e *Engine) pack() {
	kept := e.ready[:0]
	for _, r := range e.ready {
		r.pack()
		if r.head != nil || r.conn != nil && r.conn.stage.buf != nil {
			kept = append(kept, r)
		} else {
			r.listed = false
		}
	}
	clear(e.ready[len(kept):])
	if n := len(kept); n > 1 { // the first had the first choice of buffers: now it is last
		first := kept[0]
		copy(kept, kept[1:])
		kept[n-1] = first
	}
	e.ready = kept
}

// someTimers looks at the clocks of the sessions whose turn it is, and publishes the
// counters.
func (e *Engine) someTimers() {
	for n := min(TimerBatch, len(e.table.all)); n > 0 && len(e.table.all) > 0; n-- {
		if e.turn == 0 || e.turn > len(e.table.all) {
			e.turn = len(e.table.all)
		}
		e.turn-- // downwards: a tick may remove its entry
		e.table.all[e.turn].tick(e.now)
	}
	e.timerAt = e.now + timerPeriod
	e.Publish()
}

// timers looks at every session's clock, publishes the counters and notes the
// next deadline.
func (e *Engine) timers() {
	e.nextDue = 0
	for i := len(e.table.all) - 1; i >= 0; i-- { // downwards: a tick may remove its entry
		if due := e.table.all[i].tick(e.now); due != 0 && (e.nextDue == 0 || due < e.nextDue) {
			e.nextDue = due
		}
	}
	e.timerAt = e.now + timerPeriod
	e.Publish()
}

// AddRing makes the engine take operations from r, which name peers of an origin; nil is
// the engine's own. Engine's thread only; see [Engine.Call].
func (e *Engine) AddRing(r *Ring, o *Origin) {
	if o == nil {
		o = e.origin
	}
	r.origin = o
	e.rings = append(e.rings, r)
}

// Exhaust moves everything that posters have begun to post, waiting for those that
// have claimed an entry and not yet published it. Engine's thread only.
func (e *Engine) Exhaust(r *Ring) {
	for e.Collect(r); r.head != r.tail.Load(); e.Collect(r) {
		runtime.Gosched()
	}
}

// RemoveRing undoes AddRing. Operations in flight still complete.
func (e *Engine) RemoveRing(r *Ring) {
	for i, x := range e.rings {
		if x == r {
			e.rings = append(e.rings[:i], e.rings[i+1:]...)
			r.detached = true
			return
		}
	}
}

// Call has f run on the engine's thread during a coming step. It returns false
// when too many calls wait already.
func (e *Engine) Call(f func()) bool {
	select {
	case e.calls <- f:
		e.mail.Store(true)
		e.Wake()
		return true
	default:
		return false
	}
}

// Close ends every session: peers are told, operations that wait complete with
// what is known of them. Engine's thread only; the engine must be stepped until
// Idle, or for as long as the caller is willing to wait.
func (e *Engine) Close() {
	e.closing = true
	for _, t := range e.table.snapshot() {
		t.shutdown()
	}
}

// Idle reports whether nothing waits to be sent. Engine's thread only.
func (e *Engine) Idle() bool { return len(e.dirty) == 0 && len(e.ready) == 0 }
