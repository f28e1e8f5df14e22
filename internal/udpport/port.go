// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// port is an engine's port, as the device has it.
type port interface {
	Receive(packets [][]byte) int
	Release()
	Buffer() []byte
	Send(n int)
	Flush() error
	Wait(timeout time.Duration)
	Wake()
	disturb(*disturber)
	counters() map[string]uint64
	close() error
}

// bindError explains why no socket can be bound to an address.
func bindError(a netip.Addr, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return &inUseError{a, err}
	}
	return fmt.Errorf("udp: %v, port %d: %w", a, wire.UDPPort, err)
}

// inUseError is an ErrInUse. It says once what the kernel says, too.
type inUseError struct {
	at  netip.Addr
	err error
}

// Error names the address, and has the remedy.
func (e *inUseError) Error() string {
	return fmt.Sprintf("another program has UDP port %d of %v, as a rule an xdpfab, with AF_XDP or UDP "+
		"sockets: one at a time can have it: if it is a daemon, go through it by --control PATH, without --transport "+
		"udp (or, in a program, by Control); or end it, or use another address of this node", wire.UDPPort, e.at)
}

func (e *inUseError) Unwrap() []error { return []error{ErrInUse, e.err} }

// single reports whether an address, as in a Way, can be that of one node that answers
// can go to. One of the link alone cannot, since it takes a zone.
func single(a *[16]byte) bool {
	const mapped = 0xffff
	be := binary.BigEndian
	if be.Uint64(a[:]) == 0 && be.Uint32(a[8:]) == mapped {
		return a[12] != 0 && a[12] < 224
	}
	return a[0] != 0xff && be.Uint16(a[:])&0xffc0 != 0xfe80 && (be.Uint64(a[:]) != 0 || be.Uint64(a[8:]) != 0)
}
