// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// begin makes a session whose next frame is psn, at a place that it returns. attended
// says why user space has to see its frames from the first on, if it has to.
func (x *Executor) begin(c *caller, p *session.TargetParams, psn uint32, attended uint8) (place uint32, err error) {
	if p.MaxFrame > MaxFrame || p.Window < 1 || p.Window > window {
		return 0, fmt.Errorf("%w: frames of %d bytes and a window of %d; want at most %d and %d", ErrConfig, p.MaxFrame,
			p.Window, MaxFrame, window)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if place, err = x.seat(p.Party); err != nil {
		return 0, err
	}
	s := executorSession{
		Id: uint32(p.Local), Remote: p.Remote, Epoch: p.Epoch, Expected: psn, Freed: psn - 1, Auth: x.Digest(p.Key),
		Payload: uint32(p.MaxFrame - headerLen), Credit: uint16(p.Window), Life: lifeLive, Lane: p.Local.Lane(),
		Kind: uint8(p.Kind), Dscp: p.Class.DSCP, Priority: p.Class.PCP, Attended: attended,
	}
	if p.Features&wire.FeatureUnordered != 0 {
		s.Unordered = 1
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, &s); err != nil {
		return 0, fmt.Errorf("resident: encoding a session: %w", err)
	}
	v, _, err := c.call(callBegin, s.Id, place, b.Bytes())
	if err == nil && v != Drop {
		err = fmt.Errorf("resident: session %#x cannot begin at place %d: verdict %d", s.Id, place, v)
	}
	if err != nil {
		return 0, err
	}
	x.free = x.free[:len(x.free)-1]
	x.live[place] = nil // until sit
	x.begun++
	return place, nil
}

// giveBack makes the place of a session free, which was released.
func (x *Executor) giveBack(place uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rise(place)
	x.gone += viewAt(x.sessions, place).ops()
	x.free = append(x.free, place)
}

// state reads a session.
func (x *Executor) state(place uint32) (s executorSession, err error) {
	if err = x.objects.Sessions.Lookup(place, &s); err != nil {
		err = fmt.Errorf("resident: reading the session at place %d: %w", place, err)
	}
	return s, err
}

// claimInPart means that a frame has run in part: enum claim.
const claimInPart = 2

// Life of a session: enum life.
const (
	lifeFree = iota
	lifeLive
	lifeFrozen
	lifeEnded
)
