// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// timedEvery is how many frames there are for each one whose execution is timed: two
// looks at the clock take as long as the execution of a short frame.
const timedEvery = 64

// latencies are the times that an engine has measured.
type latencies struct {
	frames     uint32 // of peers, of which one in timedEvery is timed
	executions session.Latencies
	roundTrips session.Latencies
	ringOps    session.Latencies
}

// Latencies returns the times that the frames of peers took to be executed, of which some
// are measured, those of round trips, and RingOps. Engine's thread only.
func (e *Engine) Latencies() (executions, roundTrips, ringOps session.Latencies) {
	return e.latencies.executions, e.latencies.roundTrips, e.latencies.ringOps
}

// RingOps counts the times of guests' operations, for their host rings. Engine's thread
// only.
func (e *Engine) RingOps() *session.Latencies { return &e.latencies.ringOps }

// execute has the executor take a frame.
func (t *target) execute(h *wire.Header, payload, out []byte) session.Outcome {
	e := t.e
	if e.latencies.frames++; e.latencies.frames%timedEvery != 0 {
		return t.s.Receive(e.lived, h, payload, out)
	}
	began := e.cfg.Clock()
	o := t.s.Receive(e.lived, h, payload, out)
	if o.Frames > 0 {
		e.latencies.executions.Add((e.cfg.Clock() - began) / int64(o.Frames))
	}
	return o
}
