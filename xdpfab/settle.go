// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
)

// Settle waits until the outcome of a call is known, if its error leaves the outcome
// unknown. It takes what the call has returned, and returns what the call would have
// returned if its answer had not been lost:
//
//	n, err := hits.Add(ctx, 1)
//	n, err = xdpfab.Settle(ctx, n, err)
//
// If the operation ran, the error is nil and the value means what it means for the call:
// the new value of Add, the previous one of Swap or CompareAndExchange, whether
// CompareAndSwap has swapped, what Pending.Wait returns. CompareAndExchange has swapped
// if that previous value is the one it was to replace. If the operation did not run, the
// error wraps ErrNotExecuted, and the call may be repeated. If nobody will ever know, the
// error wraps ErrPeerRestarted or ErrOutcomeUnknown;
// [github.com/xdpfab/xdpfab/xdpfab/fi.OpError.Resolve] says how long it takes. Every
// other error comes back as it is, with the value.
//
// ctx bounds the wait, so the context of a call that met its deadline will not do. If ctx
// ends first, the error wraps ErrOutcomeUnknown and the cause of ctx, and can be settled
// again.
func Settle[T any](ctx context.Context, value T, err error) (T, error) {
	if !errors.Is(err, ErrOutcomeUnknown) {
		return value, err
	}
	var u unknown[T]
	if !errors.As(err, &u) {
		return value, fmt.Errorf("%w; Settle with a value of type %T cannot find the result: give it what the call "+
			"returned, or use SettleError for a call that returns an error alone", err, value)
	}
	return u.settle(ctx)
}

// SettleError is [Settle] for a call that returns an error alone, such as Remote.Store,
// the methods of a RemoteVector, Peer.Write and Peer.Send:
//
//	err = table.Add(ctx, at, deltas, sums)
//	err = xdpfab.SettleError(ctx, err)
//
// If the operation of a vector, or a read, ran, SettleError stores its results in the
// slice that the call was given for them.
func SettleError(ctx context.Context, err error) error {
	if !errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	var (
		u  interface{ settleError(context.Context) error }
		oe *OpError
	)
	if errors.As(err, &u) {
		return u.settleError(ctx)
	}
	if errors.As(err, &oe) {
		_, err = outcome(ctx, oe, oe)
	}
	return err
}

// unknown is the failure of a call that returns a T, whose outcome is unknown.
type unknown[T any] interface {
	settle(context.Context) (T, error)
}

// unsettled is such a failure. It knows what the call returns for the result of its
// operation.
type unsettled[T any] struct {
	failure *OpError
	value   func(result []byte) T
}

// later adds to the error of a call, if the outcome is unknown, what the call would
// return if the operation has run.
func later[T any](err error, value func(result []byte) T) error {
	var oe *OpError
	if !errors.Is(err, ErrOutcomeUnknown) || !errors.As(err, &oe) {
		return err
	}
	return &unsettled[T]{oe, value}
}

func (u *unsettled[T]) Error() string { return u.failure.Error() }

// Unwrap returns the OpError.
func (u *unsettled[T]) Unwrap() error { return u.failure }

func (u *unsettled[T]) settle(ctx context.Context) (value T, err error) {
	result, err := outcome(ctx, u.failure, u)
	if err == nil {
		value = u.value(result)
	}
	return value, err
}

func (u *unsettled[T]) settleError(ctx context.Context) error {
	_, err := u.settle(ctx)
	return err
}

// briefly returns the text of a cause without the diagnosis of that time: the peer has
// answered since.
func briefly(cause error) string {
	if s, is := errors.AsType[*calls.Silence](cause); is {
		cause = s.Cause
	}
	return cause.Error()
}

// outcome waits for the outcome of the operation of a call that failed with err, and
// returns its result if it ran.
func outcome(ctx context.Context, oe *OpError, err error) (result []byte, _ error) {
	over := ctx != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) // it ended the call, too
	ran, result, failure := oe.Resolve(ctx)
	switch {
	case failure != nil && oe.Open() && over:
		return nil, err
	case failure != nil && oe.Open():
		return nil, errno.Line("%w; the wait for the outcome ended: %w", err, failure)
	case failure != nil:
		return nil, failure
	case !ran:
		none := *oe
		none.Certainty = ErrNotExecuted
		none.Cause = errno.Refuse(oe.Cause, "the call ended before this was known: %s", briefly(oe.Cause))
		return nil, &none
	}
	return result, nil
}
