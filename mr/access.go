// SPDX-License-Identifier: Apache-2.0

package mr

// Access is a set of rights that a Region grants to peers.
type Access uint8

// The rights. An atomic without a result needs RemoteWrite, a read RemoteRead, every
// other atomic with a result both.
const (
	RemoteRead  Access = 1 << 0
	RemoteWrite Access = 1 << 1

	allAccess = RemoteRead | RemoteWrite
)

// String returns the rights as "r", "w", "rw" or "-".
func (a Access) String() string { return [...]string{"-", "r", "w", "rw"}[a&allAccess] }
