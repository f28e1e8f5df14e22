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

// The memory begins with two words: the doorbell counts the records that were written,
// and the other word those that were read. Behind them are slots, which are used in turn.
const (
	doorbell, taken = 0, 1
	slots, slot     = 8, 4096 // how many there are, and the bytes of one
	firstSlot       = 64
	size            = firstSlot + slots*slot
)

// place returns the offset of record n.
func place(n uint64) uint64 { return firstSlot + n%slots*slot }

// consume is the owner of the memory: it gives each record to use, in the order written.
// It ends with the context, the region or the domain.
func consume(ctx context.Context, dom *xdpfab.Domain, r *mr.Region, use func(record []byte)) error {
	read, err := r.Uint64(taken)
	if err != nil {
		return err
	}
	for n := read.Load(); ; n++ {
		// It sleeps until the doorbell has rung. The record is whole then.
		if _, err := xdpfab.Wait(ctx, dom, r, doorbell, xdpfab.AtLeast(n+1)); err != nil {
			return err
		}
		use(bytes.TrimRight(r.Bytes()[place(n):place(n)+slot], "\x00"))
		read.Store(n + 1) // from now on the slot may be written again
	}
}

// producer writes the records. There is one at a time, and one goroutine uses it.
type producer struct {
	peer    *xdpfab.Peer
	region  xdpfab.RemoteRegion
	words   xdpfab.RemoteVector[uint64]
	written uint64 // records, as the doorbell counts them
	read    uint64 // of these, by the owner, when it was last asked
}

// find learns where the memory is, and how many records it has had.
func (p *producer) find(ctx context.Context) (err error) {
	if p.region, err = p.peer.Lookup(ctx, "inbox"); err != nil {
		return err
	}
	p.words, p.read = xdpfab.VectorAt[uint64](p.peer, p.region), 0
	p.written, err = p.words.At(doorbell).Load(ctx)
	return err
}

// put writes a record without zero bytes at its end. After an error the record may be
// there or not, and the producer is of no further use.
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
		// Nobody else rings, so the doorbell of the same memory tells whether the record
		// is there. In new memory the records that nobody had read are gone.
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
	whole := make([]byte, slot) // what an earlier record has left there is overwritten
	copy(whole, record)
	return xdpfab.SettleError(ctx, p.peer.WriteSignal(ctx, p.region, place(p.written), whole,
		xdpfab.Signal{Region: p.region, Index: doorbell, Op: atomic.Sum, Value: 1}))
}

// room waits until fewer than so many records are there that the owner has not read.
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
