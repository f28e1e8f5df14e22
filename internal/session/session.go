// SPDX-License-Identifier: Apache-2.0

// Package session makes operations run exactly once. It is the stage between
// the engine, which knows operations, and the codec, which knows bytes: it
// gives every request frame its sequence number, keeps it until it is answered,
// and on the other node decides whether an arriving frame is new, a duplicate,
// early or foreign.
//
// A session joins two endpoints and carries requests one way. Its two halves
// are different machines:
//
//	Initiator   hello -> requests -> retransmissions -> acknowledgements
//	Target      order, duplicate cache, credits
//	Listener    the target's door: cookies first, state only afterwards
//
// All three are pure: events and the time go in (Receive, Tick, Commit,
// Executed), verdicts come out as return values and frames through Emit. They
// have no clock, no I/O, no goroutine and, once the buffers of the Pool exist,
// no allocation; so the same code runs behind a NIC and inside a simulator.
//
// # Buffers
//
// The initiator keeps each request payload until its answer arrives, and is the
// only side with timers. The target keeps each answer until the initiator's
// cumulative ack says that it arrived, and executes frames strictly in psn
// order. Both windows are at most [MaxWindow] frames, so memory is bounded by
// 2 × window × payload bytes for a session and by the [Pool] for an engine.
//
// # Time
//
// Times are int64 nanoseconds of any monotonic clock, which must be the same
// for all calls.
package session

import (
	"fmt"
	"math"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// MaxWindow is the largest number of request frames in flight in one session.
// The send and hold sets are 64-bit maps indexed by psn modulo 64, and the sack
// field of the frame header has 64 bits.
const MaxWindow = 64

const slotMask = MaxWindow - 1

// MinFrame is the smallest frame size in bytes that a session can be agreed on: what
// the longest headers leave of [wire.MinMTU]. Every single record fits, and so does a
// catalogue entry.
const MinFrame = wire.MinMTU - wire.MaxOverhead

// Config holds what the sessions of one engine share. The zero value of a field means
// its default.
type Config struct {
	Window int // frames in flight, 1..MaxWindow; also the credit granted; 0 means MaxWindow

	RTOMin time.Duration // floor of the retransmission timeout; 10 ms
	RTOMax time.Duration // ceiling of its back-off; 500 ms
	GiveUp time.Duration // silence after which work in flight is given up; 5 s
	// AckDelay is how long the initiator waits for another request to carry
	// its ack before it sends one alone, which lets the target free its
	// cache; 20 ms. With many sessions in turn a shorter one doubles the packets.
	AckDelay time.Duration
	// BaseRTT is the longest round trip of the idle network; 50 µs. The time
	// that a frame takes beyond that, or beyond the shortest round trip seen if
	// that is less, counts as queueing delay, which the congestion window keeps
	// short. If no round trip to any peer was as short, Network knows better.
	BaseRTT time.Duration
	// Network is what the sessions have found out; nil for nothing. An engine has its
	// own.
	Network *Network
	// Features are the extensions of the protocol that this side knows.
	Features wire.Features
	// StaticWindow leaves the congestion window out: only the window and the
	// credits bound what is in flight. It is there to measure the cost of the
	// congestion window.
	StaticWindow bool
	// RoundTrips counts the round trips that initiators measure; nil for nobody. An
	// engine has its own.
	RoundTrips *Latencies
	// IdleRetire is the silence after which the target retires a session that does
	// not ask for longer; 90 s. It must be longer than IdleClose.
	IdleRetire time.Duration
}

// Keep is the silence for which an initiator asks its target to remember a session:
// longer than the initiator itself takes to give up and then to settle the work in
// flight.
func (c *Config) Keep() time.Duration {
	return min(IdleClose+SuspendedFor+keptGiveUps*c.GiveUp, MaxKeep)
}

// keptGiveUps is how many give-up times are in Keep: one until the initiator gives up,
// one in which it settles, and two for an initiator that is late itself.
const keptGiveUps = 4

// MaxKeep is the longest silence that a target can be asked for.
const MaxKeep = math.MaxUint16 * time.Second

// MaxGiveUp is the longest give-up time for which Keep is long enough, rounded down.
const MaxGiveUp = 4 * time.Hour

// SuspendedFor is how long a suspended initiator keeps its requests, so that it
// may still learn what became of them.
const SuspendedFor = 60 * time.Second

// Stalled is the pause between two looks at the clock beyond which this side was
// not running: stopped, or its owner did not call. Silence of that time is no sign
// of the peer's death. It is longer than an engine ever sleeps.
const Stalled = 2 * time.Second

// IdleClose is the time without work after which an initiator closes its
// session. Targets wait longer, so that a live initiator never finds its
// session gone.
const IdleClose = 30 * time.Second

// WithDefaults returns c with defaults in place of zero fields. The error says which
// field no session can have.
func (c Config) WithDefaults() (Config, error) {
	if c.Window < 0 || c.Window > MaxWindow {
		return c, fmt.Errorf("window of %d frames: want 1..%d, or 0 for the most", c.Window, MaxWindow)
	}
	if c.Window == 0 {
		c.Window = MaxWindow
	}
	for _, f := range []struct {
		name  string
		d     *time.Duration
		usual time.Duration
	}{
		{"floor of the retransmission timeout", &c.RTOMin, 10 * time.Millisecond},
		{"ceiling of the retransmission timeout", &c.RTOMax, 500 * time.Millisecond},
		{"give-up time", &c.GiveUp, 5 * time.Second},
		{"delay of an ack", &c.AckDelay, 20 * time.Millisecond},
		{"idle retirement", &c.IdleRetire, 90 * time.Second},
		{"longest idle round trip", &c.BaseRTT, 50 * time.Microsecond},
	} {
		if *f.d < 0 {
			return c, fmt.Errorf("%s of %v: want more than 0, or 0 for %v", f.name, *f.d, f.usual)
		}
		if *f.d == 0 {
			*f.d = f.usual
		}
	}
	return c, nil
}

// Reason describes why a session ended, or why it never began.
type Reason uint8

// Reasons. What each means for the operations in flight is decided by
// [Initiator.FrameOutcome].
const (
	Alive           Reason = iota
	PeerSilent             // no answer to hello within GiveUp
	GaveUp                 // no answer to a request within GiveUp
	PeerRestarted          // another life of the target's process answers
	Forgotten              // the target lives and no longer knows this session
	PeerClosed             // the target closed the session or shuts down
	RefusedEndpoint        // the target has no such endpoint
	RefusedFull            // the target has no room for another session
	RefusedVersion         // the target speaks another version of the protocol
	RefusedClosing         // the target shuts down
	ProtocolError          // the peer sent a well-formed frame that contradicts the session
	ClosedHere             // closed by this side
	Idle                   // closed by this side because nothing happened
	Settled                // everything that was unknown after giving up is known
	Outdated               // the target has seen the end of this session, or a later one, or restarted meanwhile
	Renamed                // another name of the same endpoint has a session already
	Cancelled              // the caller has let go of the operation
	NoEvents               // the target takes no events, or does not know of any
	NoMessages             // likewise, messages
	RefusedKeyless         // the target's endpoint has an authorization key, and this one has none
	RefusedKey             // this endpoint has an authorization key, and the target's has none
	RefusedOtherKey        // the two have different ones
	Unproven               // the target accepts, but does not prove that it knows the key
	Rejected               // the owner of the target has rejected the request for a connection
	Unanswered             // the request for a connection was not answered
	HostLost               // the process that takes the operations to their targets has ended
	Crowded                // the target has no room for another operation that waits
)

var reasonNames = [...]string{
	"alive", "peer silent", "gave up", "peer restarted", "forgotten", "peer closed",
	"no such endpoint", "target full", "version refused", "target shuts down",
	"protocol error", "closed", "idle", "settled", "outdated", "renamed",
	"cancelled", "no events", "no messages", "key wanted", "key not wanted", "wrong key", "key not proven",
	"connection rejected", "connection request not answered", "host lost", "no room to wait",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown reason"
}

// FrameOutcome is what the initiator knows of one request frame.
type FrameOutcome uint8

// The outcomes of a frame in a session that ended.
const (
	Answered    FrameOutcome = iota // its answer arrived
	NeverRan                        // it did not run and never will
	MayHaveRun                      // it ran once or not at all: outcome unknown
	LostToCrash                     // as MayHaveRun, and the target has restarted
)
