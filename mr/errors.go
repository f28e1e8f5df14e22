// SPDX-License-Identifier: Apache-2.0

package mr

import "errors"

// Errors of this package; what is returned wraps one of them, and the system's error where there is one.
var (
	ErrSize      = errors.New("mr: impossible size")
	ErrAccess    = errors.New("mr: unknown access rights")
	ErrName      = errors.New("mr: unusable name")
	ErrKeyInUse  = errors.New("mr: key in use")
	ErrNameInUse = errors.New("mr: name in use")
	ErrInUse     = errors.New("mr: memory has registered regions")
	ErrClosed    = errors.New("mr: memory is closed")
	ErrMemory    = errors.New("mr: cannot get memory")
)

// Access is a set of rights that a Region grants to peers.
type Access uint8

// The rights. An atomic without a result needs RemoteWrite, a read RemoteRead, every other atomic with a result both.
const (
	RemoteRead  Access = 1 << 0
	RemoteWrite Access = 1 << 1

	allAccess = RemoteRead | RemoteWrite
)

// String returns the rights as "r", "w", "rw" or "-".
func (a Access) String() string {
	switch a & allAccess {
	case RemoteRead:
		return "r"
	case RemoteWrite:
		return "w"
	case allAccess:
		return "rw"
	}
	return "-"
}

// Fault is why Region.Resolve refuses.
type Fault uint8

// The faults, in the order of the checks.
const (
	OK          Fault = iota
	NoAccess          // a right is missing
	OutOfBounds       // not wholly inside the region
	Misaligned        // address not a multiple of the alignment
)

// String returns the fault in words.
func (f Fault) String() string {
	switch f {
	case OK:
		return "ok"
	case NoAccess:
		return "no access"
	case OutOfBounds:
		return "out of bounds"
	}
	return "misaligned"
}
