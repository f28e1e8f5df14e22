// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
)

// Flush waits until everything has ended that was begun before on this peer, or on
// another Peer of the domain that was dialled at the same endpoint: by a Start method, by
// other goroutines, or by callers that have stopped waiting. A peer that a mailbox
// dialled has a session of its own, and so a flush of its own. What failed has ended,
// too; the error is about the wait alone: operations may still be under way then.
func (p *Peer) Flush(ctx context.Context) error {
	if err := p.there(); err != nil {
		return err
	}
	return p.to.Do(ctx, calls.Call{Verb: engine.VerbFlush})
}

// Quiet is like [Peer.Flush], for all operations that the domain has begun: on all peers,
// from all mailboxes, and from the endpoints of package fi. It does not wait for
// operations that begin later. When the domain has ended, so that nothing is under way
// any more, it fails with the error of [Domain.Err].
func (d *Domain) Quiet(ctx context.Context) error {
	if err := d.there(); err != nil {
		return err
	}
	return calls.Of(d.Domain).Quiet(ctx)
}
