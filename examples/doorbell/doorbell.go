// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// The memory begins with two words. The doorbell counts the records that were written,
// and the other word counts those that were read. The slots follow, and are used in turn.
const (
	doorbell, taken = 0, 1
	slots, slot     = 8, 4096 // number of slots, and bytes in each
	firstSlot       = 64
	size            = firstSlot + slots*slot
)

// place returns the offset of record n.
func place(n uint64) uint64 { return firstSlot + n%slots*slot }

// consume runs at the owner of the memory. It passes each record to use, in the order of
// writing. It returns when the context, the region or the domain ends.
func consume(ctx context.Context, dom *xdpfab.Domain, r *mr.Region, use func(record []byte)) error {
	read, err := r.Uint64(taken)
	if err != nil {
		return err
	}
	for n := read.Load(); ; n++ {
		// Wait sleeps until the doorbell has rung. Then the record is complete.
		if _, err := xdpfab.Wait(ctx, dom, r, doorbell, xdpfab.AtLeast(n+1)); err != nil {
			return err
		}
		use(bytes.TrimRight(r.Bytes()[place(n):place(n)+slot], "\x00"))
		read.Store(n + 1) // now the producer may write the slot again
	}
}

// producer writes the records. Only one exists at a time, and one goroutine uses it.
type producer struct {
	peer    *xdpfab.Peer
	region  xdpfab.RemoteRegion
	words   xdpfab.RemoteVector[uint64]
	written uint64 // records, as the doorbell counts them
	read    uint64 // by the owner, as of the last look
}

// find looks up the memory, and reads how many records were written to it.
func (p *producer) find(ctx context.Context) (err error) {
	if p.region, err = p.peer.Lookup(ctx, "inbox"); err != nil {
		return err
	}
	p.words, p.read = xdpfab.VectorAt[uint64](p.peer, p.region), 0
	p.written, err = p.words.At(doorbell).Load(ctx)
	return err
}

// put writes a record, which must not end with zero bytes. After an error the record may
// have been written, and the producer must not be used again.
func (p *producer) put(ctx context.Context, record []byte) error {
	for {
		err := p.room(ctx, slots)
		if err == nil {
			err = p.ring(ctx, record)
		}
		switch {
		case err == nil:
			p.written++
			return nil
		case !errors.Is(err, xdpfab.ErrOutcomeUnknown) && !errors.Is(err, xdpfab.ErrPeerRestarted):
			return err
		}
		// Nobody else rings, so if the memory is the same, the doorbell shows whether the
		// record is there. In new memory, records that nobody had read are gone.
		region, written := p.region, p.written
		if err := p.find(ctx); err != nil {
			return err
		}
		if p.region == region && p.written == written+1 {
			return nil
		}
	}
}

// ring writes a record and rings the doorbell, as one operation.
func (p *producer) ring(ctx context.Context, record []byte) error {
	whole := make([]byte, slot) // overwrites all bytes of an earlier record
	copy(whole, record)
	return xdpfab.SettleError(ctx, p.peer.WriteSignal(ctx, p.region, place(p.written), whole,
		xdpfab.Signal{Region: p.region, Index: doorbell, Op: atomic.Sum, Value: 1}))
}

// room waits until fewer than most records are unread.
func (p *producer) room(ctx context.Context, most uint64) (err error) {
	pause := time.NewTicker(100 * time.Microsecond)
	defer pause.Stop()
	for p.written-p.read >= most {
		if p.read, err = p.words.At(taken).Load(ctx); err != nil {
			return err
		}
		if p.written-p.read >= most {
			<-pause.C
		}
	}
	return nil
}
