// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// OnceBytes is the size of a Once.
const OnceBytes = MutexBytes + placeBytes

// Once runs a function once, and keeps its result for all programs.
//
//	words 2 to 31    a Mutex
//	words 32, 33     the result, and 1 when the function has run: 16 bytes that change together
//
// Invariant: the result is written once, and never changes. The function runs in one
// program at a time, as far as a Mutex can promise that. It runs again if the program
// dies or loses the lock before the result is written, or if the home loses its memory.
type Once struct{ m *Mutex }

const onceCell = queueWords / 2

// NewOnce returns the Once at a place. All programs must name the same lease.
func NewOnce(ctx context.Context, at Place, lease time.Duration) (*Once, error) {
	m, err := newMutex(ctx, at, kindOnce, 2, lease)
	return made(&Once{m}, err)
}

// Do returns the result of the function. It calls f if there is no result yet. If f
// fails, Do stores nothing and returns f's error, and the next Do calls f again. The
// token is that of Held.Token. If Do fails with an error that wraps ErrOutcomeUnknown, f
// has run, and the next Do finds out whether its result was stored.
func (o *Once) Do(ctx context.Context, f func(ctx context.Context, token uint64) (uint64, error)) (v uint64,
	err error) {
	if err := o.there(); err != nil {
		return 0, err
	}
	own := false // err is that of f, and not to be changed
	defer func() {
		if !own {
			o.m.named("Do", &err)
		}
	}()
	if f == nil {
		return 0, errno.Unsent(errno.Refuse(ErrParameter, "no function is given: want one"))
	}
	call := func(ctx context.Context, token uint64) (uint64, error) {
		v, err := f(ctx, token)
		own = err != nil
		return v, err
	}
	for {
		mem, err := o.m.memory(ctx)
		if err != nil {
			return 0, err
		}
		result, err := mem.cell(onceCell).Load(ctx)
		if err == nil && result.Hi == 1 {
			return result.Lo, nil
		}
		if err != nil && !o.m.restarted(mem, err) {
			return 0, err
		}
		if value, done, err := o.run(ctx, call); done || err != nil {
			return value, err
		}
	}
}

// run calls the function under the lock, unless another program has done that meanwhile.
// It returns nothing if that is not certain.
func (o *Once) run(ctx context.Context, f func(context.Context, uint64) (uint64, error)) (
	v uint64, done bool, err error) {
	h, err := o.m.Lock(ctx)
	if err != nil {
		return 0, false, err
	}
	defer h.Unlock()
	cell, certainty := h.memory().cell(onceCell), xdpfab.ErrNotExecuted
	result, err := cell.Load(h.Context())
	if err == nil && result.Hi == 0 {
		certainty = xdpfab.ErrOutcomeUnknown // the function has run, whatever becomes of its result
		if v, err = f(h.Context(), h.Token()); err != nil {
			return 0, false, err
		}
		result, _, err = cell.CompareAndExchange(ctx, xdpfab.U128{}, xdpfab.U128{Hi: 1, Lo: v})
		if result, err = xdpfab.Settle(ctx, result, err); err == nil && result.Hi == 0 {
			return v, true, nil
		}
	}
	if err != nil && ctx.Err() == nil && (h.Context().Err() != nil || o.m.restarted(h.memory(), err)) {
		return 0, false, nil
	}
	return result.Lo, err == nil, certain(ctx, err, certainty)
}
