// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// none is the error of a call on an object that is nil or a zero value. Most often the
// program has not looked at the error of the call that makes it.
func none(what, makes string) error {
	return noneOf(what, makes+", whose error says why there is none")
}

// noneOf is none for an object that is made without an error.
func noneOf(what, makes string) error {
	return errno.Unsent(errno.Refuse(ErrClosed, "xdpfab: the %s is nil or a zero value: want one of %s", what, makes))
}

// there returns an error if the peer is none.
func (p *Peer) there() error {
	if p == nil || p.to == nil {
		return none("Peer", "Dial")
	}
	return nil
}

// there returns an error if there are no bytes, or they are no peer's.
func (r *RemoteBytes) there() error {
	if r == nil || r.ctx == nil {
		return noneOf("RemoteBytes", "BytesAt")
	}
	return r.peer.there()
}

// there returns an error if the domain is none.
func (d *Domain) there() error {
	if d == nil || d.Domain == nil {
		return none("Domain", "Open, Pipe or NewNetwork")
	}
	return nil
}

// there returns an error if the mailbox is none.
func (b *Mailbox) there() error {
	if b == nil || b.box == nil {
		return none("Mailbox", "Domain.NewMailbox")
	}
	return nil
}

// there returns an error if the cluster is none.
func (c *Cluster) there() error {
	switch {
	case c == nil || c.peers == nil:
		return noneOf("Cluster", "NewCluster")
	case c.dom == nil:
		return c.dom.there()
	case c.names == nil:
		return none("Directory", "directory.Open")
	}
	return c.dom.there()
}

// findAt finds a region at a home that may be none.
func findAt(ctx context.Context, at Home, region string) (*place, error) {
	if at == nil {
		return nil, noneOf("Home", "Domain.Dial or NewCluster")
	}
	return at.find(ctx, region)
}
