// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// burst is the most packets that one step takes from the port.
const burst = 64

// Config holds the parameters of an engine.
type Config struct {
	Port Port
	// Serve begins the target half of a session that was accepted, or returns nil
	// when there is no room for one. It is called on the engine's thread. It may be
	// nil for an engine that only initiates.
	Serve func(now int64, p session.TargetParams) Served
	// Accept answers the hello of an origin for an endpoint number with
	// [wire.HelloAccepted] or with the status of its refusal. It is called on the
	// engine's thread. Nil refuses every hello.
	Accept func(endpoint uint16, origin uint64) wire.HelloStatus
	// Request answers a request for a connection to an endpoint number, which comes
	// from an address that was proved: with [wire.HelloWaiting], with
	// [wire.HelloConnect] or [wire.HelloRejected] and what to say, or with the status
	// of a refusal. A request comes many times, with the same origin. It is called on
	// the engine's thread. Nil refuses every request.
	Request func(endpoint uint16, asked *wire.Connection, from wire.Addr) (wire.HelloStatus, wire.Connection)
	// Events returns where the events of an endpoint go, or nil if it takes none. It
	// is called on the engine's thread when a session is accepted. It may be nil.
	Events func(endpoint uint16) Events
	// Inflow takes the messages of a session with an endpoint, begun by the node at
	// the address; nil if the endpoint receives none. It is called on the engine's
	// thread when a session is accepted. It may be nil.
	Inflow func(endpoint uint16, from wire.Addr) session.Inflow
	// Attendant has frames of a session with an endpoint executed for which the
	// memory here does not suffice; nil if nobody does that. The session was begun by
	// an origin of the node at the address. It is called on the engine's thread when
	// a session is accepted. It may be nil.
	Attendant func(endpoint uint16, from wire.Addr, origin uint64) session.Attendant
	// Callee answers the calls of a session with an endpoint, begun by the node at the
	// address; nil if the endpoint takes none. It calls ended, from any goroutine, when
	// a call has ended. It is called on the engine's thread when a session is accepted.
	// It may be nil.
	Callee func(endpoint uint16, from wire.Addr, p session.Party, ended func()) session.Callee
	// Padding reports whether the requests of a session that begins now should be as
	// long as their answers: see [wire.FeaturePadding]. It is called on the engine's
	// thread. Nil means that none should.
	Padding func() bool
	// Longest returns the length of the longest frame, in bytes, of a session that
	// begins now, if its executor takes no longer ones, though the interface does;
	// otherwise 0. It is called on the engine's thread, and may be nil.
	Longest func(p *session.TargetParams) int
	// Room is called on the engine's thread before sessions whose messages wait try
	// again, after a call of Engine.Room. It may be nil.
	Room func()
	// Keys returns the authorization keys of an endpoint that accepts sessions; ok is
	// false if there is no such endpoint. It is called on the engine's thread. Nil means
	// that no endpoint has keys.
	Keys func(endpoint uint16) (keys session.Keys, ok bool)
	// Sealer makes the step that seals and opens the frames of a session, at each
	// side. It is called on the engine's thread when the session is accepted. Nil,
	// and a nil Sealer, stand for the checksum.
	Sealer func(Sealing) wire.Sealer
	// SealRoom is the most bytes by which a sealer makes frames longer. The frames
	// that sessions agree on are shorter by as much.
	SealRoom int
	// Elsewhere names the queue that serves an endpoint, if that queue has an engine
	// outside of the group. It is called on the engine's thread. It may be nil.
	Elsewhere func(endpoint uint16) (queue int, is bool)
	// Outside takes a packet that is for a queue outside of the group, or for
	// AnyQueue, and reports whether there is one. The packet may get lost. It is
	// called on the engine's thread, and must copy the packet. It may be nil.
	Outside func(packet []byte, queue int) bool
	// Spread gives the sessions that peers begin to the engines of the group in turn,
	// whatever queue their hellos arrive on. Frames of a session that arrive elsewhere
	// are passed on as ever. The first engine's value counts for the group.
	Spread bool
	// GuestRing takes the operations to their targets in place of sessions of this
	// engine, which then has no use for packets; nil for an engine that has an
	// interface.
	GuestRing GuestRing
	Session   session.Config
	Medium    wire.Medium // of the port: what stands before the frames in its packets
	MTU       int         // of the interface, in bytes: the largest raw frame
	Local     wire.MAC    // packets to this address stay in the group
	Sifted    bool        // the port has packets for this node alone, be they to Local or to another address
	Queue     int         // number of the queue, 0..63
	Lane      uint8
	Sessions  int          // most sessions, 7/8 of which peers may open; 0 means 4096
	Buffers   int          // most payload buffers for requests in flight; 0 means 8192
	Clock     func() int64 // monotonic nanoseconds; nil means the system's
	// Life names this life of the process to peers; engines of one interface share
	// it. Zero means a random one.
	Life uint64
	// Resident names the life of what outlives the process: sessions of executors
	// outside of it, and their memory. Zero means that nothing does.
	Resident uint64
	// Suspect is told, on the engine's thread, that the peer at the end of a link
	// does not answer. It must not block. It may be nil.
	Suspect func(wire.Link)
	// Narrow is told on the engine's thread that longer frames do not pass to a peer and
	// back, and Widened that they do after all. They must not block; nil for none.
	Narrow  func(l wire.Link, frame int)
	Widened func(l wire.Link)
	// Journal is told what begins, ends and is refused, on the engine's thread. It
	// must not block, and must copy what it keeps. Nil for nobody.
	Journal func(*Note)
	// Secret is the key of the cookies in hellos. Engines of one interface share it,
	// since a peer's packets may come on any queue. Zero means a random one.
	Secret [32]byte
	// Random returns 64 unpredictable bits, for nonces, epochs, tags and the secret
	// of the cookies; nil means the runtime's generator, which the system seeds. A
	// simulator passes a generator that repeats itself.
	Random func() uint64
}

const (
	defaultSessions = 4096
	defaultBuffers  = 8192
)

// Engine is the poller of one queue. See the package comment for its threads.
type Engine struct {
	cfg   Config
	port  Port // that of cfg, or one that shows its packets: see Tap
	group *Group
	// member is the engine's place in its group.
	member     int
	takeParcel func(*parcel) // handles one; made once, so that no call allocates it
	clock

	// Sessions.
	table     table
	begun     map[atTarget]*conn // sessions that a target has accepted
	suspended []*conn            // the oldest first; some may be over
	dirty     []outgoing         // sessions with frames to send
	unsettled []*target          // sessions in which something ran in this burst
	awaited   bool               // operations wait for what may have run
	answered  answered
	gotReply  wire.Reply // scratch
	waiters   waiters    // sessions whose next message waits for room
	pairs     *pairs
	crowd
	orphans          []*target              // of a paused engine: see importTarget
	spared           []interface{ Close() } // likewise, of sessions that cannot go on
	closing, departs bool                   // see Detach

	// Operations on their way out.
	origin  *Origin // of the peers that Engine.NewPeer makes
	rings   []*Ring
	ready   []*remote            // those with operations to pack
	starved map[*remote]struct{} // those whose next operation waits for its next part
	record  wire.Record          // scratch
	word    Word                 // scratch
	gather  []byte               // scratch; made when first needed
	unsaid  []*Ring              // those whose sinks are to be flushed
	cargoes []*cargo             // free ones
	reqs    *session.Pool        // requests in flight
	viaHost *ringClient          // nil if the engine has sessions of its own
	guests  hostRings            // other processes that this engine carries operations for

	// Packets.
	packets     [burst][]byte
	at          arrival
	event       Event // scratch
	borrowed    bool  // packets of the last Receive are still to be released
	sent        int   // packets that are queued without a flush, and wait for the kick
	delayed     int   // packets of this round that need no more than an ack, which may be delayed
	teamed      bool  // one thread steps other engines too, so a round makes no pause: see Team
	prompt      prompt
	deferredAck deferredAck
	// messenger is the session to which messages have come last; nil if it has ended.
	messenger *target

	// Work that other goroutines leave for the engine.
	inbox chan parcel
	calls chan func()
	soon  callQueue
	moves moves
	mail  atomic.Bool // set when something is left in one of them

	count     counts
	latencies latencies
	shown     [numCounters]atomic.Uint64
	sleeper   sleeper
}

// New returns an engine. The engine owns nothing but memory: the port stays the caller's.
func New(cfg Config) (*Engine, error) {
	if cfg.Port == nil {
		return nil, fmt.Errorf("engine: no port")
	}
	if cfg.Queue < 0 || cfg.Queue >= wire.MaxQueues {
		return nil, fmt.Errorf("engine: queue %d: want 0..%d", cfg.Queue, wire.MaxQueues-1)
	}
	if cfg.SealRoom < 0 || cfg.MTU < wire.MinMTU+cfg.SealRoom {
		return nil, fmt.Errorf("engine: MTU of %d bytes: want at least %d, and as much more as seals take, %d", cfg.MTU,
			wire.MinMTU, cfg.SealRoom)
	}
	if cfg.Sessions < 0 || cfg.Sessions > wire.MaxSessions {
		return nil, fmt.Errorf("engine: %d sessions: want 1..%d, or 0 for %d", cfg.Sessions, wire.MaxSessions,
			defaultSessions)
	}
	if cfg.Buffers < 0 {
		return nil, fmt.Errorf("engine: %d buffers: want at least 1, or 0 for %d", cfg.Buffers, defaultBuffers)
	}
	if cfg.Sessions == 0 {
		cfg.Sessions = defaultSessions
	}
	if cfg.Buffers == 0 {
		cfg.Buffers = defaultBuffers
	}
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() int64 { return int64(time.Since(start)) + 1 }
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	var err error
	if cfg.Session, err = cfg.Session.WithDefaults(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
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
		clock: newClock(cfg.Clock),
		crowd: newCrowd(),
		pairs: newPairs(cfg.Secret),
		begun: make(map[atTarget]*conn), starved: make(map[*remote]struct{}),
		reqs:  session.NewPool(payload, cfg.Buffers),
		inbox: make(chan parcel, 4*burst),
		calls: make(chan func(), 16),
	}
	e.cfg.Session.RoundTrips, e.cfg.Session.Network = &e.latencies.roundTrips, new(session.Network)
	e.viaHost = newRingClient(cfg.GuestRing)
	e.takeParcel = func(p *parcel) { e.onPacket(p.packet, p.passedOn) }
	e.table.init(cfg.Lane, uint8(cfg.Queue), cfg.Sessions, cfg.Random)
	e.origin = e.NewOrigin(0)
	return e, nil
}

// round does everything there is to do, once.
func (e *Engine) round() int {
	work := e.receive() + e.collect()
	if e.viaHost != nil {
		work += e.viaHost.round()
	}
	if len(e.guests.all) > 0 {
		work += e.guests.take()
	}
	if e.awaited { // so that the news of operations that waited leaves with the answers
		e.awaited = false
		e.settle()
	}
	if e.mail.Load() {
		e.mail.Store(false) // before looking: a goroutine that leaves something sets it afterwards
		work += e.takeInbox()
		e.settle()
		work += e.takeReplies() + e.takeCalls() + e.takeMoves() + e.retryWaiting()
	}
	if len(e.ready) > 0 {
		e.look()
		e.pack()
	}
	if e.now >= e.timerAt {
		e.timers(TimerBatch)
	}
	if len(e.unsaid) > 0 {
		e.say()
	}
	if (len(e.dirty) > 0 || e.sent > 0) && !e.acknowledgesLater() {
		work += e.flush()
	}
	if e.deferredAck.c != nil && !e.prompt.waited {
		e.takeDeferredAck()
	}
	if len(e.unsettled) > 0 {
		e.settle()
	}
	if e.borrowed { // only now, so that the answers leave first
		e.borrowed = false
		e.port.Release()
	}
	return work
}

// collect takes the operations that are published in the rings.
func (e *Engine) collect() int {
	work := 0
	for _, r := range e.rings {
		if r.collectable() {
			work += e.Collect(r)
		}
	}
	return work
}

// Collect takes the operations that are published in one ring. Engine's thread only.
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
// list while its window is shut, and leaves it while the next part of an operation is
// missing, which may be for ever.
func (e *Engine) pack() {
	kept := e.ready[:0]
	for _, r := range e.ready {
		r.pack()
		switch {
		case r.conn != nil && r.conn.stage.buf != nil, r.works() && !r.starved():
			kept = append(kept, r)
			continue
		case r.works():
			r.starve()
		}
		r.listed = false
	}
	clear(e.ready[len(kept):])
	if n := len(kept); n > 1 { // the first one had the first choice of buffers: next time it is last
		first := kept[0]
		copy(kept, kept[1:])
		kept[n-1] = first
	}
	e.ready = kept
}

// AddRing makes the engine take operations from r. Their entries name peers of the given
// origin; nil means the engine's own origin. Engine's thread only; see [Engine.Call].
func (e *Engine) AddRing(r *Ring, o *Origin) {
	if o == nil {
		o = e.origin
	}
	if r.origin = o; r.cells != nil { // nothing is published in any other one
		e.rings = append(e.rings, r)
	}
}

// Exhaust takes everything that posters have begun to post, and waits for those that have
// claimed an entry and not yet published it. All peers of the ring's origin must have
// been closed: then no operation is in flight, and each one taken completes at once, so
// that flights cannot run out. Engine's thread only.
func (e *Engine) Exhaust(r *Ring) {
	for e.Collect(r); r.head != r.tail.Load(); e.Collect(r) {
		runtime.Gosched()
	}
}

// RemoveRing undoes AddRing. Operations in flight still complete; the sink has been told
// of all completed ones when RemoveRing returns. Engine's thread only.
func (e *Engine) RemoveRing(r *Ring) {
	e.say()
	r.detached = true
	e.rings = slices.DeleteFunc(e.rings, func(x *Ring) bool { return x == r })
}

// Close ends every session: it tells the peers, and completes the operations that wait
// with what is known of them. Engine's thread only. The caller must then step the engine
// until Idle, or for as long as it is willing to wait.
func (e *Engine) Close() {
	e.closing = true
	for _, t := range e.table.snapshot() {
		t.shutdown()
	}
	if e.viaHost != nil {
		e.viaHost.close(session.ClosedHere)
		e.say()
	}
}
