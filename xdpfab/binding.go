// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// HandleOption is an option of Word and Vector.
type HandleOption func(*binding)

// AutoRebind makes a handle look its region up again by itself when the peer has
// restarted, or has registered the region anew under the same key, and repeat the
// operation if it is sure not to have run. It is for memory that may start anew, such as
// counters that are only compared with their own past; not for a lock, whose owner has to
// learn of the restart.
func AutoRebind() HandleOption { return func(b *binding) { b.auto = true } }

// binding ties a handle, and its copies, to the registration that it was made from.
type binding struct {
	peer *Peer
	name string                       // of the region; empty for a handle that was made from a key
	size uint64                       // bytes that the region must have
	auto bool                         // AutoRebind
	at   atomic.Pointer[RemoteRegion] // the registration; replaced by rebind
}

// bind returns a binding to a region of the catalogue.
func bind(p *Peer, r RemoteRegion, size uint64, options []HandleOption) *binding {
	b := &binding{peer: p, name: r.Name, size: size}
	b.at.Store(&r)
	for _, o := range options {
		o(b)
	}
	return b
}

// rebind looks the region up again.
func (b *binding) rebind(ctx context.Context) error {
	if b.name == "" {
		return fmt.Errorf(
			"xdpfab: a handle that was made from a key cannot be bound again: find the region by its name: %w",
			ErrNotImplemented)
	}
	r, err := b.peer.Lookup(ctx, b.name)
	if err != nil {
		return err
	}
	if r.Size < b.size {
		return fmt.Errorf("xdpfab: region %q now has %d bytes, want at least %d: %w", b.name, r.Size, b.size,
			ErrOutOfBounds)
	}
	b.at.Store(&r)
	return nil
}

// mostRebinds is the most restarts in a row that one operation survives.
const mostRebinds = 3

// after decides on the failure of an operation on the registration r. It returns the
// error to report, and whether to try again instead.
func (b *binding) after(ctx context.Context, err error, r *RemoteRegion, attempt int) (error, bool) {
	var oe *OpError
	if !errors.As(err, &oe) {
		return err, false
	}
	if !b.auto || attempt >= mostRebinds || !errors.Is(err, ErrPeerRestarted) ||
		!errors.Is(oe.Certainty, ErrNotExecuted) {
		return err, false
	}
	if again := b.rebind(ctx); again != nil {
		return errors.Join(err, again), false
	}
	return nil, true
}
