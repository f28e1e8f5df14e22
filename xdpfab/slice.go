// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"encoding/binary"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// ReadSlice copies len(values) values of a peer's region, from offset bytes behind its
// beginning on, to values, by one Peer.Read: in the region they lie one behind the
// other, little-endian. No value of more than 8 bytes, and none at an address that is no
// multiple of its size, is read at once; [Vector] reads such values whole.
func ReadSlice[T Element](ctx context.Context, p *Peer, r RemoteRegion, offset uint64, values []T) error {
	if err := littleEndian(); err != nil {
		return err
	}
	return p.Read(ctx, r, offset, bytesOf(values))
}

// WriteSlice copies values to a peer's region, as ReadSlice reads them, by one
// Peer.Write.
func WriteSlice[T Element](ctx context.Context, p *Peer, r RemoteRegion, offset uint64, values []T) error {
	if err := littleEndian(); err != nil {
		return err
	}
	return p.Write(ctx, r, offset, bytesOf(values))
}

// littleEndian returns an error on a machine whose memory differs from the wire.
func littleEndian() error {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return nil
	}
	return errno.Unsent(errno.Refuse(ErrNotImplemented,
		"xdpfab: slices of values on a big-endian machine: want a little-endian one, or convert them "+
			"by Bytes and ReadBytes"))
}
