// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// looks is the number of times in the give-up time that a guard looks for the
// registration: as often as a watch asks a silent peer. Tests look more often.
var looks = time.Duration(8)

// Guard returns a context that ends when the word's memory may be lost. context.Cause
// then returns an error that wraps ErrPeerRestarted if the registration that the word is
// bound to is gone, with the peer's process or while it serves, or ErrPeerSilent,
// ErrPeerClosed, ErrClosed or ErrHostLost as for Peer.Watch. It is ErrPeerClosed after
// Service.Close of the peer's last service, and ErrPeerRestarted if the peer has another
// one. If ctx ends first, so does the context, with its cause. A resident region that
// outlives the peer's process is not lost.
//
// The guard has begun when Guard returns, so the context tells of every loss after that.
// The end of a process is noticed as by Peer.Watch, that of a registration alone within
// an eighth of the give-up time, by reading the word. To end the guard, end ctx.
//
// Guard fails if the word cannot be read, with ErrPeerRestarted if the registration is
// gone already, and with ErrNotImplemented if the word is bound to no registration or the
// domain is of ThreadDomain. With AutoRebind, the context belongs to the registration at
// the time of the call.
func (r Remote[T]) Guard(ctx context.Context) (context.Context, error) {
	if err := errno.NoContext(ctx); err != nil {
		return nil, err
	}
	if err := r.check("Guard", wire.VerbFetch, atomic.Read); err != nil {
		return nil, err
	}
	at := r.bind.at.Load()
	p := at.peer
	if at.Incarnation == 0 {
		return nil,
			errno.Refuse(ErrNotImplemented,
				"xdpfab: a word that was made from a key alone cannot be guarded: find its region by its name")
	}
	if p.to.Alone {
		return nil,
			errno.Refuse(ErrNotImplemented,
				"xdpfab: a guard uses the domain at any time, ThreadDomain leaves that to one caller: want "+
					"ThreadSafe")
	}
	guarded, lose := context.WithCancelCause(ctx)
	stop := p.to.AfterClose(lose)
	w, err := p.to.Start(guarded, watch)
	if err == nil {
		go func() {
			defer stop()
			lose(r.watch(guarded, at, w))
		}()
		err = r.look(guarded, at)
	} else {
		stop()
	}
	if err != nil {
		err = explain(err, at.RemoteRegion, r.of("Guard"), mr.RemoteRead)
		lose(err)
		return nil, err
	}
	go func() { lose(r.patrol(guarded, at)) }()
	return guarded, nil
}

var watch = calls.Call{Verb: engine.VerbWatch}

// watch waits until the peer's process has ended, and the registration with it. A watch
// has begun.
func (r Remote[T]) watch(ctx context.Context, at *place, w *calls.Waiter) error {
	p := at.peer
	for {
		err := p.to.Await(ctx, watch, w)
		if !errors.Is(err, ErrPeerRestarted) || r.look(ctx, at) != nil {
			return err
		}
		if w, err = p.to.Start(ctx, watch); err != nil {
			return err
		}
	}
}

// patrol looks for the registration until it is gone. Of all else the watch tells.
func (r Remote[T]) patrol(ctx context.Context, at *place) error {
	pace := time.NewTicker(max(at.peer.to.GiveUp/looks, time.Millisecond))
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pace.C:
		}
		if err := r.look(ctx, at); errors.Is(err, ErrPeerRestarted) {
			return lost(at, err)
		}
	}
}

// lost says what is gone if a look finds no registration.
func lost(at *place, err error) error {
	var oe *OpError
	if !errors.As(err, &oe) {
		return err
	}
	cause := oe.Cause
	if oe.Certainty == ErrPeerRestarted {
		cause = fmt.Errorf("%w: %w", ErrPeerRestarted, cause)
	}
	gone := errno.Line("xdpfab: region %q on %s is no longer there: %w", at.Name, at.peer.Addr(), cause)
	return errno.Also(gone, err)
}

// look reads the word, if its registration is still there.
func (r Remote[T]) look(ctx context.Context, at *place) error {
	var now [wide]byte
	return at.peer.to.Do(ctx, calls.Call{
		Verb: wire.VerbFetch, Op: uint8(atomic.Read), Datatype: uint8(r.dt), Count: 1,
		Key: at.Key, Incarnation: at.Incarnation, Offset: at.Base + r.offset, Result: now[:r.size],
	})
}
