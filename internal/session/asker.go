// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Asker asks an endpoint that listens for a connection. It is a hello that is repeated
// until the owner of the endpoint has answered, at a pace that falls from RTOMin to
// RTOMax, for the give-up time at most. No session comes of it: the answer names the
// endpoint to have one with. As each of its hellos has the same nonce and origin, the
// target takes them for one request, and answers each of them alike.
type Asker struct {
	cfg    *Config
	p      Params
	cookie wire.Cookie
	due    bool
	heard  bool // the target has taken the request
	over   bool
	why    Reason
	answer wire.Connection

	challenges int
	began      int64
	seenAt     int64 // when this side last looked at the clock
	timer      int64 // when the next hello is due
	pace       int64 // the time after which another one follows
}

// NewAsker returns a request that begins with a hello on the next Emit. The request is
// Params.Options.Connection.
func NewAsker(cfg *Config, p Params, now int64) *Asker {
	return &Asker{cfg: cfg, p: p, due: true, began: now, seenAt: now, pace: int64(cfg.RTOMin),
		timer: now + int64(cfg.RTOMin)}
}

// Outcome returns the answer, once there is one. why is Alive if the request was
// accepted, and otherwise the reason why there will be no connection.
func (a *Asker) Outcome() (answer wire.Connection, why Reason, over bool) {
	return a.answer, a.why, a.over
}

// Cancel ends the request. The target is not told.
func (a *Asker) Cancel() { a.end(ClosedHere) }

// Due reports whether Emit has something to write.
func (a *Asker) Due() bool { return a.due && !a.over }

// Deadline returns the time at which Tick has something to do, 0 for never.
func (a *Asker) Deadline() int64 {
	if a.over {
		return 0
	}
	return min(a.timer, a.began+int64(a.cfg.GiveUp))
}

// Emit writes the hello, if it is due, into b and returns its length.
func (a *Asker) Emit(b []byte) int {
	if !a.Due() {
		return 0
	}
	a.due = false
	return emitHello(b, a.cfg, &a.p, a.cookie, 0)
}

// Tick lets time pass. A time for which this side was stopped does not count.
func (a *Asker) Tick(now int64) {
	if gap := now - a.seenAt; gap > int64(Stalled) {
		a.began += gap
	}
	a.seenAt = now
	switch {
	case a.over:
	case now-a.began >= int64(a.cfg.GiveUp) && a.heard:
		a.end(Unanswered)
	case now-a.began >= int64(a.cfg.GiveUp):
		a.end(PeerSilent)
	case now >= a.timer:
		a.pace = min(2*a.pace, int64(a.cfg.RTOMax))
		a.due, a.timer = true, now+a.pace
	}
}

// Receive takes a hello-ack. False means that it contradicts the request.
func (a *Asker) Receive(now int64, h *wire.Header, payload []byte) bool {
	var m wire.HelloAckMsg
	if a.over || h.Type != wire.HelloAck || m.Parse(payload) != wire.ReasonOK || m.Nonce != a.p.Nonce {
		return false
	}
	switch m.Status {
	case wire.HelloChallenge:
		// A cookie gets old while the request waits, so any number of them is followed,
		// but no more of them at once than a target needs.
		if m.Cookie == a.cookie {
			return true
		}
		if a.challenges++; a.challenges <= maxChallenges {
			a.due = true
		}
		a.cookie = m.Cookie
	case wire.HelloWaiting:
		a.heard, a.challenges = true, 0
	case wire.HelloConnect, wire.HelloRejected:
		a.answered(h, &m, payload)
	case wire.HelloFull: // another hello may find room
	case wire.HelloShuttingDown:
		a.end(RefusedClosing)
	case wire.HelloKeyWanted:
		a.end(RefusedKeyless)
	case wire.HelloKeyUnwanted:
		a.end(RefusedKey)
	case wire.HelloKeyWrong:
		a.end(RefusedOtherKey)
	default: // also HelloAccepted, by a target that does not know requests
		a.end(RefusedEndpoint)
	}
	return true
}

// answered takes an answer, if it proves the key.
func (a *Asker) answered(h *wire.Header, m *wire.HelloAckMsg, payload []byte) {
	switch {
	case !a.p.Key.proven(ofHelloAck, h, &m.Options, payload):
		a.end(Unproven)
	case !m.Options.Connection.Set:
		a.end(ProtocolError)
	case m.Status == wire.HelloRejected:
		a.answer = m.Options.Connection
		a.end(Rejected)
	default:
		a.answer = m.Options.Connection
		a.end(Alive)
	}
}

func (a *Asker) end(why Reason) {
	if !a.over {
		a.over, a.why = true, why
	}
}
