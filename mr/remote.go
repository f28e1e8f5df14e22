// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"encoding/binary"
	"math"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// RemoteRegion describes a region as its peers use it: as they find it in the catalogue
// of the node that registered it, or as a program there sends it to them.
//
// A caller that has learnt a region's key by other means fills in the Key; also the Base
// if the region is addressed virtually, and the Incarnation if only this registration is
// meant. A Size of 0 means that the size is not known.
type RemoteRegion struct {
	Name   string // in the catalogue; empty for a region that is known by its key
	Key    uint64
	Size   uint64 // bytes
	Base   uint64 // the offset of the first byte: 0, or its virtual address
	Access Access
	// Incarnation tells this registration from every other one, including later ones
	// under the same name or key, and those after a restart. A registration never has 0;
	// 0 means any registration that has the key.
	Incarnation uint32
	// Keyed means that the region has an authorization key, which a peer has to prove. A
	// node of an older release does not say so, nor does the text of MarshalBinary.
	Keyed bool
}

// Remote describes the region for peers. A program sends it to them in a message, by
// [RemoteRegion.MarshalBinary], to give them memory without a name.
func (r *Region) Remote() RemoteRegion {
	if r == nil {
		return RemoteRegion{}
	}
	return RemoteRegion{Name: r.name, Key: r.key, Size: uint64(len(r.data)), Base: r.base, Access: r.access,
		Incarnation: r.born, Keyed: r.auth != 0}
}

// ErrRemoteRegion means that bytes describe no region: they are damaged, or were never
// meant to.
var ErrRemoteRegion = errno.New("no description of a region", syscall.EINVAL)

// The description begins with a mark, which names the version, and is little-endian.
const (
	remoteMark = "xr1"
	remoteHead = len(remoteMark) + 1 + 4 + 3*8 // also the access, the incarnation, key, size and base
)

// MarshalBinary returns the description in at most 96 bytes, the name being the last. It
// holds the key: who gets it may use the region, if the region's endpoint lets it in.
func (r RemoteRegion) MarshalBinary() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, remoteHead+len(r.Name)), remoteMark...)
	b = append(b, byte(r.Access))
	b = binary.LittleEndian.AppendUint32(b, r.Incarnation)
	for _, n := range []uint64{r.Key, r.Size, r.Base} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, r.Name...), nil
}

// UnmarshalBinary reads what MarshalBinary wrote, and nothing else: it refuses whatever
// describes no region with ErrRemoteRegion, and then changes nothing. The bytes may come
// from anyone: whatever they say, the region's node refuses what its owner did not grant.
func (r *RemoteRegion) UnmarshalBinary(b []byte) error {
	if len(b) < remoteHead || string(b[:len(remoteMark)]) != remoteMark {
		return failed("%w: %d bytes: want %q and at least %d more", ErrRemoteRegion, len(b), remoteMark,
			remoteHead-len(remoteMark))
	}
	b, le := b[len(remoteMark):], binary.LittleEndian
	found := RemoteRegion{Access: Access(b[0]), Incarnation: le.Uint32(b[1:]), Key: le.Uint64(b[5:]),
		Size: le.Uint64(b[13:]), Base: le.Uint64(b[21:]), Name: string(b[29:])}
	if err := found.check(); err != nil {
		return err
	}
	*r = found
	return nil
}

// check refuses a description that no region has.
func (r *RemoteRegion) check() error {
	switch {
	case len(r.Name) > MaxName:
		return failed("%w: name of %d bytes: want at most %d", ErrRemoteRegion, len(r.Name), MaxName)
	case r.Access&^allAccess != 0:
		return failed("%w: rights %#x: want RemoteRead, RemoteWrite or both", ErrRemoteRegion, uint8(r.Access))
	case r.Base > math.MaxUint64-r.Size:
		return failed("%w: %d bytes from %#x on", ErrRemoteRegion, r.Size, r.Base)
	}
	return nil
}
