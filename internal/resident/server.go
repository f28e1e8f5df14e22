// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Local executes requests that the program cannot: internal/memory does. It reaches the
// same memory as the program, and perhaps more. See executor.Memory.
type Local interface {
	Check(payload []byte, ops int) (uses wire.Features, reason wire.Reason)
	Execute(resp []byte, streak uint32) (n int, flags uint8)
	Present(auth uint32)
	Leave()
}

// Server begins resident sessions for one engine, and belongs to its thread.
type Server struct {
	x     *Executor
	c     *caller
	local Local
	now   func() int64
	holds *session.Pool
	frame []byte // of a call
	resp  []byte // what local answers
	shown bool   // see Show
}

// DefaultHolds is the largest number of buffers for early frames, if the caller does not
// choose one.
const DefaultHolds = 8192

// NewServer returns a server of sessions, to which local belongs alone. It keeps at most
// holds early frames; 0 means DefaultHolds. now tells the engine's time, in which
// sessions are heard.
func (x *Executor) NewServer(local Local, holds int, now func() int64) (*Server, error) {
	if holds < 0 {
		return nil, fmt.Errorf("%w: %d buffers for early frames; want at least 1, or 0 for %d", ErrConfig, holds,
			DefaultHolds)
	}
	if holds == 0 {
		holds = DefaultHolds
	}
	return &Server{
		x: x, c: newCaller(x.objects.XdpfabCall), local: local, now: now, holds: session.NewPool(maxPayload, holds),
		frame: make([]byte, MaxFrame), resp: make([]byte, answerHead+MaxFrame),
	}, nil
}

// Suits reports whether a session can be resident if its frames are short enough: events
// and messages have places in user space, which a frame must not run without.
func Suits(p *session.TargetParams) bool {
	return p.Places == nil && p.Inflow == nil && p.Callee == nil
}

// Takes reports whether a session can be resident.
func Takes(p *session.TargetParams) bool { return Suits(p) && p.MaxFrame <= MaxFrame }

// Begin makes a session that was accepted resident. It wraps ErrFull if there is no place
// for another one.
func (v *Server) Begin(now int64, p session.TargetParams) (*Session, error) {
	return v.Continue(now, p, session.FirstPSN(p.Epoch))
}

// Continue makes a session resident that another executor has served up to now: every
// frame before psn has run, and its answer has arrived.
func (v *Server) Continue(now int64, p session.TargetParams, psn uint32) (*Session, error) {
	if !Takes(&p) {
		return nil,
			fmt.Errorf("%w: a session with events, messages or frames of %d bytes; want none of them, and at most %d",
				ErrConfig, p.MaxFrame, MaxFrame)
	}
	if !v.x.hasRoom(p.Party) { // before anything is written down without success
		return nil, fmt.Errorf("%w for another session", ErrFull)
	}
	if p.Memo != nil { // first: a session that is not written down cannot be adopted
		if err := v.x.book.write(recordsMap, uint32(p.Local), p.Memo()); err != nil {
			return nil, err
		}
	}
	place, err := v.x.begin(v.c, &p, psn, v.attended())
	if err != nil {
		v.x.book.erase(recordsMap, uint32(p.Local))
		return nil, err
	}
	s := &Session{v: v, p: p, place: place, state: viewAt(v.x.sessions, place), holds: session.NewShare(v.holds),
		heardAt: now}
	s.heard, s.losses.acked = s.state.heard(), psn-1
	v.x.sit(s)
	return s, nil
}
