// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Counter names one of an engine's event counters.
type Counter int

// The counters. They are followed by one for each verdict by which a session drops a
// request or answers it without running it, one for each reason for which the codec
// rejects a packet, one for each status of an operation that was refused, and one for
// each answer that refuses a session.
const (
	PacketsReceived Counter = iota
	PacketsSent
	OpsSent          // records sent, first transmissions
	FramesResent     // request frames sent again
	RequestsExecuted // frames
	OpsExecuted      // records of them
	LookupsNotFound  // records of them that asked for regions which are not there
	Hellos
	HellosUnauthorized // without the authorization key of their endpoint
	SessionsOpened     // by this side
	SessionsAccepted   // by this side
	SessionsRetired    // accepted ones, after long silence
	SessionsEvicted    // accepted ones, for want of room
	MessagesStalled    // of peers that stopped in the middle of them, which ended their sessions
	PeersRestarted     // other lives that answered
	SessionsFailed     // opened ones, by silence, restart or refusal of the peer
	UnknownSession     // frames of sessions that do not exist here
	StaleEpoch         // frames of an earlier session under the same id
	Invalid            // well-formed frames that contradict their session
	PathsNarrow        // sessions with short frames, since long ones do not pass
	HandedOver         // frames that came on another queue than their session's
	PortErrors
	verdictBase
	refusedBase = verdictBase + Counter(session.NumVerdicts)
	opBase      = refusedBase + Counter(wire.NumReasons)
	helloBase   = opBase + Counter(wire.NumStatuses)
	numCounters = helloBase + Counter(wire.NumHelloStatuses)
)

// counts are written by the engine's thread only.
type counts [numCounters]uint64

// Counters is a snapshot of an engine's counters.
type Counters [numCounters]uint64

var counterNames = [verdictBase]string{
	"packets_received", "packets_sent", "ops_sent", "frames_resent", "requests_executed", "ops_executed",
	"lookups_not_found",
	"hellos", "hellos_unauthorized", "sessions_opened", "sessions_accepted", "sessions_retired", "sessions_evicted",
	"messages_stalled",
	"peers_restarted", "sessions_failed",
	"unknown_session", "stale_epoch", "invalid", "paths_narrow", "handed_over", "port_errors",
}

// String returns the counter's name as statistics show it.
func (c Counter) String() string {
	switch {
	case c < verdictBase:
		return counterNames[c]
	case c < refusedBase:
		return "request_" + identifier(session.Verdict(c-verdictBase).String())
	}
	switch {
	case c < opBase:
		return "refused_" + identifier(wire.Reason(c-refusedBase).String())
	case c < helloBase:
		return "op_refused_" + identifier(wire.Status(c-opBase).String())
	}
	return "hello_refused_" + identifier(wire.HelloStatus(c-helloBase).String())
}

func identifier(s string) string { return strings.ReplaceAll(s, " ", "_") }

// Each calls f for every counter that can ever be other than zero.
func (c *Counters) Each(f func(name string, value uint64)) {
	for i, v := range c {
		switch Counter(i) {
		case verdictBase + Counter(session.Drop), verdictBase + Counter(session.Execute),
			verdictBase + Counter(session.Gone), refusedBase + Counter(wire.ReasonOK), opBase + Counter(wire.StatusOK),
			opBase + Counter(wire.StatusNotFound):
			continue
		}
		if i >= int(helloBase) && !refuses(wire.HelloStatus(Counter(i)-helloBase)) {
			continue
		}
		f(Counter(i).String(), v)
	}
}

// Publish shows the counters, as they are now, to other goroutines. It also runs with the
// timers, so the counters that Counters returns are at most a few milliseconds old on a
// busy engine. Engine's thread only; see [Engine.Call].
func (e *Engine) Publish() {
	for i, v := range e.count {
		if e.shown[i].Load() != v {
			e.shown[i].Store(v)
		}
	}
}

// Counters returns the counters as last published. Any goroutine may call it.
func (e *Engine) Counters() (c Counters) {
	for i := range c {
		c[i] = e.shown[i].Load()
	}
	return c
}
