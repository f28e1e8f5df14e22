// SPDX-License-Identifier: Apache-2.0

// Package calls is what a facade needs of the objects of libfabric beneath it: calls
// that wait, to peers that were dialled, and mailboxes whose receives wait. The
// endpoints that post and receive implement [Poster] and [Receiver]; everything else
// here is concrete, so that the buffers of a call may stay on its caller's stack.
package calls

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/node"
)

// Of returns an fi.Domain as a facade reaches it. Package xdpfab/fi sets it, and so shows
// its users nothing of it.
var Of func(domain any) Domain

// Domain is a domain as a facade reaches it.
type Domain interface {
	// Dial opens a session from the endpoint that dialled peers share.
	Dial(ctx context.Context, addr string) (*Peer, error)
	// OpenBox makes a mailbox, to which peers can send from now on.
	OpenBox(BoxAttr) (*Box, error)
	// OpenHandler makes an endpoint whose function answers requests.
	OpenHandler(HandlerAttr) (Handler, error)
	// Quiet waits until everything has ended that the domain's endpoints have posted.
	Quiet(ctx context.Context) error
	// Node returns the interface in use.
	Node() *node.Node
}
