// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// apart is how many packets go to a destination one by one after the kernel has refused
// to cut a message for it. Then the next message tries again: one call in vain for so
// many packets costs nothing that can be measured.
const apart = 4096

// refuses reports whether an error says that the kernel does not cut this message here
// and now. None of the reasons is for ever, and none is the whole socket's:
//
//   - EMSGSIZE, before Linux 6.14 EINVAL: a datagram is longer than the path's MTU, which
//     is the route's, the device's, or what a router has told. A datagram alone would leave
//     in fragments.
//   - EIO: IPsec transforms what goes there; before Linux 6.11 also a device without
//     checksum offload.
//   - EOPNOTSUPP: another system with Linux's calls.
func refuses(e unix.Errno) bool {
	return e == unix.EINVAL || e == unix.EIO || e == unix.EMSGSIZE || e == unix.EOPNOTSUPP
}

// refusals are the destinations to which packets go one by one: the last ones refused, in
// places by a hash of the address.
type refusals struct {
	places [1 << refusalBits]refusal
	some   int // places that are taken
}

const refusalBits = 8

type refusal struct {
	to   [16]byte // as in a wire.Way
	left int      // packets that still go one by one; 0 for a free place
}

func (r *refusals) at(to *[16]byte) *refusal {
	const golden = 0x9e3779b97f4a7c15 // spreads neighbours
	hash := (binary.NativeEndian.Uint64(to[:]) ^ binary.NativeEndian.Uint64(to[8:])) * golden
	return &r.places[hash>>(64-refusalBits)]
}

// add records a refusal.
func (r *refusals) add(to *[16]byte) {
	x := r.at(to)
	if x.left == 0 {
		r.some++
	}
	*x = refusal{*to, apart}
}

// of returns the refusal that is in force for a destination, or nil.
func (r *refusals) of(to *[16]byte) *refusal {
	if r.some == 0 {
		return nil
	}
	if x := r.at(to); x.left > 0 && x.to == *to {
		return x
	}
	return nil
}

// left records that a packet went to a destination by itself. A packet for which the
// kernel had no room has not left: it is looked at again.
func (r *refusals) left(to *[16]byte) {
	if x := r.of(to); x != nil {
		if x.left--; x.left == 0 {
			r.some--
		}
	}
}
