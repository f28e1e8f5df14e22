// SPDX-License-Identifier: Apache-2.0

package port

import (
	"errors"

	"github.com/xdpfab/xdpfab/internal/route"
)

var (
	// ErrClosed means that the Interface was closed.
	ErrClosed = errors.New("interface is closed")
	// ErrUnreachable means that the next hop to an address does not answer.
	ErrUnreachable = route.ErrUnreachable
	// ErrNoRoute and ErrNoSource say that there is no way to an address: from the
	// interface, and from an address that it has.
	ErrNoRoute, ErrNoSource = route.ErrNoRoute, route.ErrNoSource
	// ErrNoUDP means that an IP address was asked for, but the interface was
	// opened without Options.UDP.
	ErrNoUDP = errors.New("UDP is off")
	// ErrSockets means that another program has UDP sockets on the port of frames, at
	// an address that the XDP program would take the packets of.
	ErrSockets = errors.New("another program has UDP sockets there")
)
