// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"hash/crc32"
	"io"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// The region begins with a header of two words: the length of the file and its checksum.
const (
	size   = 16 << 20
	header = 16
)

// attempts is how many times in a row a copy may fail without progress.
const attempts = 3

// send copies data to the region.
func send(ctx context.Context, peer *xdpfab.Peer, data []byte) error {
	region, err := peer.Lookup(ctx, "bulk")
	if err != nil {
		return err
	}
	for tries, from := 1, 0; ; tries++ {
		n, err := write(ctx, peer, region, data, from)
		if from += n; n > 0 { // these bytes are certainly written; later ones may be written twice
			tries = 1
		}
		switch {
		case err == nil || ctx.Err() != nil || tries == attempts:
			return err
		case errors.Is(err, xdpfab.ErrPeerRestarted):
			from = 0 // the memory is new
			if region, err = peer.Lookup(ctx, "bulk"); err != nil {
				return err
			}
		}
	}
}

// write copies data, beginning at an offset. Operations run in the order in which they
// are posted, so a reader that finds the length in the header also finds the data.
func write(ctx context.Context, peer *xdpfab.Peer, region xdpfab.RemoteRegion, data []byte, from int) (n int,
	err error) {
	length := xdpfab.WordAt[uint64](peer, region, 0)
	if err := length.Store(ctx, 0); err != nil {
		return 0, err
	}
	if n, err = xdpfab.BytesAt(ctx, peer, region).WriteAt(data[from:], header+int64(from)); err != nil {
		return n, err
	}
	sum := xdpfab.WordAt[uint64](peer, region, 1)
	return n, errors.Join(sum.Store(ctx, uint64(crc32.ChecksumIEEE(data))), length.Store(ctx, uint64(len(data))))
}

var errNothing = errors.New("no file there, or one that changed during the copy")

// fetch copies the file back.
func fetch(ctx context.Context, peer *xdpfab.Peer) ([]byte, error) {
	region, err := peer.Lookup(ctx, "bulk")
	if err != nil {
		return nil, err
	}
	var head [2]uint64
	if err := xdpfab.ReadSlice(ctx, peer, region, 0, head[:]); err != nil {
		return nil, err
	}
	if head[0] == 0 || head[0] > size-header {
		return nil, errNothing
	}
	data, err := io.ReadAll(io.NewSectionReader(xdpfab.BytesAt(ctx, peer, region), header, int64(head[0])))
	if err == nil && uint64(crc32.ChecksumIEEE(data)) != head[1] {
		err = errNothing
	}
	return data, err
}
