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
		return &InUseError{At: a, err: err}
	}
	return fmt.Errorf("udp: %v, port %d: %w", a, wire.UDPPort, err)
}

// InUseError is an ErrInUse. It says once what the kernel says, too.
type InUseError struct {
	At  netip.Addr
	err error
}

// Error names the address, and has the remedy.
func (e *InUseError) Error() string {
	return e.Taken() + ": if it is xdpfabd, name its socket (--control PATH, XDPFAB_CONTROL, DomainAttr.Control); " +
		"otherwise end it, which `ss -ulnp` shows to root, or use another address of this node"
}

// Taken is the error without a remedy.
func (e *InUseError) Taken() string {
	return fmt.Sprintf("another program has UDP port %d of %v, and one at a time can have it", wire.UDPPort, e.At)
}

// Unwrap returns ErrInUse, and the kernel's error.
func (e *InUseError) Unwrap() []error { return []error{ErrInUse, e.err} }

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
