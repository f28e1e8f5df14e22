// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// ElectionBytes is the size of an Election.
const ElectionBytes = MutexBytes + placeBytes

// Election makes one of several programs the leader, until it resigns, dies or is cut
// off.
//
//	words 2 to 31    a Mutex: the leader has the lock
//	words 32, 33     the value and the ticket of the last leader: 16 bytes that change together
//
// Invariant: of two leaders, the earlier one's lease is over. The ticket of the last
// leader never decreases, so Leader never returns an earlier leader than before.
type Election struct{ m *Mutex }

const leaderCell = queueWords / 2

// NewElection returns the election at a place. All programs must name the same lease.
func NewElection(ctx context.Context, at Place, lease time.Duration) (*Election, error) {
	m, err := newMutex(ctx, at, kindElection, 2, lease)
	return made(&Election{m}, err)
}

// Campaign waits until the caller is the leader, and publishes its value, such as the
// number of its node. The caller leads until Held.Context ends; Held.Unlock resigns.
// After an error the caller is not the leader.
func (e *Election) Campaign(ctx context.Context, value uint64) (h *Held, err error) {
	if err := e.there(); err != nil {
		return nil, err
	}
	defer e.m.named("Campaign", &err)
	for {
		h, err := e.m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		switch again, err := e.lead(ctx, h, value); {
		case err == nil:
			return h, nil
		case !again:
			return nil, err
		}
	}
}

// lead publishes the value of a new leader. If it fails, the caller leads no more; again
// reports whether another attempt makes sense.
func (e *Election) lead(ctx context.Context, h *Held, value uint64) (again bool, err error) {
	if err = e.tell(h.Context(), h, value); err == nil {
		return false, nil
	}
	lost := h.Context().Err() != nil || e.m.restarted(h.memory(), err)
	_ = h.Unlock()
	return lost && ctx.Err() == nil, err
}

// tell writes the value, unless a later leader has.
func (e *Election) tell(ctx context.Context, h *Held, value uint64) error {
	m := h.memory()
	cell, mine := m.cell(leaderCell), xdpfab.U128{Hi: h.token - m.epoch, Lo: value}
	was, err := cell.Load(ctx)
	for err == nil && was.Hi < mine.Hi {
		var swapped bool
		was, swapped, err = cell.CompareAndExchange(ctx, was, mine)
		if was, err = xdpfab.Settle(ctx, was, err); swapped {
			return nil
		}
	}
	return err
}

// Leader returns the value and the token of the last leader. ok reports whether it may
// still lead: it has neither resigned nor been followed by another. If there has been no
// leader, ok is false, and value and token are 0. A leader that has died may still count
// as the leader until a candidate has waited for the lease.
func (e *Election) Leader(ctx context.Context) (value, token uint64, ok bool, err error) {
	if err := e.there(); err != nil {
		return 0, 0, false, err
	}
	defer e.m.named("Leader", &err)
	err = e.m.look(ctx, func(m *memory) error {
		last, err := m.cell(leaderCell).Load(ctx)
		if err != nil || last.Hi == 0 {
			return err
		}
		turn, err := m.at(turnWord).Load(ctx)
		value, token, ok = last.Lo, m.epoch+last.Hi, turn>>beatBits == last.Hi
		return err
	})
	return value, token, ok, err
}
