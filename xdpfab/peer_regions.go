// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
)

// Lookup finds a region by the name under which it is published. It fails with
// ErrNoRegion when there is none; [Peer.Regions] lists those that there are, and the
// error of Word and Vector names them. It changes nothing, so every failure to reach the
// peer wraps ErrNotExecuted, and the cause.
func (p *Peer) Lookup(ctx context.Context, name string) (RemoteRegion, error) {
	if err := p.there(); err != nil {
		return RemoteRegion{}, err
	}
	r, err := p.lookup(ctx, name)
	if errors.Is(err, ErrNoRegion) {
		err = fmt.Errorf("%w: Peer.Regions lists those of the peer, which publishes one by Domain.Serve, or as "+
			"xdpfabd --region", err)
	}
	return r, err
}

// lookup is Lookup without advice.
func (p *Peer) lookup(ctx context.Context, name string) (RemoteRegion, error) {
	r, err := p.to.Lookup(ctx, name)
	return RemoteRegion(r), err
}

// Regions lists the peer's catalogue: the regions that have a name. It fails as Lookup
// does.
func (p *Peer) Regions(ctx context.Context) ([]RemoteRegion, error) {
	if err := p.there(); err != nil {
		return nil, err
	}
	var list []RemoteRegion
	for total := uint32(1); uint32(len(list)) < total; {
		r, n, err := p.to.Entry(ctx, len(list))
		if errors.Is(err, ErrNoRegion) {
			break // an empty catalogue, or one that shrank meanwhile
		}
		if err != nil {
			return nil, err
		}
		list, total = append(list, RemoteRegion(r)), n
	}
	return list, nil
}
