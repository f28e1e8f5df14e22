// SPDX-License-Identifier: Apache-2.0

package udpport

import "errors"

var (
	// ErrClosed means that the Device was closed.
	ErrClosed = errors.New("udp: device is closed")
	// ErrInUse means that another socket of this node has an address and wire.UDPPort.
	ErrInUse = errors.New("address in use")
	// ErrNoAddress means that there is no address to bind a socket to.
	ErrNoAddress = errors.New("no address")
	// ErrNoRoute means that there is no way to an address.
	ErrNoRoute = errors.New("no route")
	// ErrMTU means that the interface's MTU is too small for frames.
	ErrMTU = errors.New("unsuitable MTU")
)

// Options say how to use an interface. The zero value is a good choice.
type Options struct {
	// Portable uses package net also on Linux.
	Portable bool
	// Single joins and cuts no datagrams, on Linux: each is a message.
	Single bool
}
