// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Peer is an endpoint of another node, which Domain.Dial has dialled. A method waits
// until its operation has ended. Any number of goroutines may call the methods.
type Peer struct{ to *calls.Peer }

// Dial opens a session to the endpoint at addr: a MAC address for raw Ethernet, or an IP
// address or a host's name for UDP, each optionally with "/" and an endpoint number. It
// fails with ErrArgument when addr is no address, with ErrPeerSilent when there is no
// answer within the domain's GiveUp time, with ErrRefused when the node has no such
// endpoint, or with the context; all of these wrap ErrNotExecuted, too. A silent IP
// address may cost another second, in which raw Ethernet is tried: the error says so if
// it is UDP alone that the node does not serve. An endpoint to which a session is open is
// not asked again: the next operation tells whether it is still there.
func (d *Domain) Dial(ctx context.Context, addr string) (*Peer, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	return dialled(calls.Of(d.Domain).Dial(ctx, addr))
}

// dialled makes a Peer of the result of a Dial.
func dialled(to *calls.Peer, err error) (*Peer, error) {
	if errors.Is(err, wire.ErrAddr) {
		err = errno.Refuse(ErrArgument, "%w", err)
	}
	if err != nil {
		return nil, errno.Unsent(err)
	}
	return &Peer{to}, nil
}

// Addr returns the address that was dialled.
func (p *Peer) Addr() string {
	if p.there() != nil {
		return ""
	}
	return p.to.Name
}

// Close ends this use of the peer: later calls fail with ErrClosed, and watches end. With
// the last use the session ends, and operations that wait complete with what is known of
// them; as long as another Dial uses the same endpoint, session and operations go on.
// Closing twice is no error.
func (p *Peer) Close() error {
	if err := p.there(); err != nil {
		return err
	}
	return p.to.Close()
}

// Watch waits until the session to the peer has ended, and returns the reason: an error
// that wraps ErrPeerSilent (also when the peer has not answered probes for the give-up
// time), ErrPeerRestarted, ErrPeerClosed, ErrClosed or ErrHostLost. It returns
// ErrPeerRestarted also if the session outlives the peer's process because the kernel
// executes it: everything but the resident regions is lost then. It does not notice a
// region that is registered anew while the peer's process serves: Remote.Guard does.
// Without a watch, only the next operation notices a peer's end. If ctx ends first, its
// error is returned.
func (p *Peer) Watch(ctx context.Context) error {
	if err := p.there(); err != nil {
		return err
	}
	return p.to.Watch(ctx)
}
