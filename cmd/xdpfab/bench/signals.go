// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// behind returns the room for a signalled word behind the bytes that are put, with what
// aligns it; 0 if puts have no signal.
func (x *run) behind() uint64 {
	if x.c.Op != PutSignal {
		return 0
	}
	return 2*load.WordSize - 1
}

// signalled returns the offset of the word that all puts signal, and its value.
func (x *run) signalled(ctx context.Context, t *target, flight int) (offset, value uint64, err error) {
	if x.c.Op != PutSignal {
		return 0, 0, nil
	}
	offset = (uint64(flight)*x.c.Size + load.WordSize - 1) / load.WordSize * load.WordSize
	value, err = x.word(ctx, t, offset)
	return offset, value, err
}

func (x *run) word(ctx context.Context, t *target, offset uint64) (uint64, error) {
	p, err := x.dom.Dial(ctx, t.Addr)
	if err != nil {
		return 0, err
	}
	n, err := xdpfab.WordAt[uint64](p, t.Region, offset/load.WordSize).Load(ctx)
	if err = errors.Join(err, p.Close()); err != nil {
		err = fmt.Errorf("reading the signalled word at %d: %w", offset, err)
	}
	return n, err
}

// signals compares the growth of the signalled word with the puts that were acknowledged.
func (x *run) signals(ctx context.Context, t *target, offset, before uint64) error {
	after, err := x.word(ctx, t, offset)
	if err != nil {
		return err
	}
	puts := uint64(0)
	for i, w := range t.workers {
		if x.c.test(i) == load.Writes {
			puts += w.done()
		}
	}
	if after-before != puts {
		return fmt.Errorf("verification failed: the signalled word of %s at %d grew by %d, but %d puts were "+
			"acknowledged; does another program write there?", nameOf(t.Region), offset, after-before, puts)
	}
	return nil
}
