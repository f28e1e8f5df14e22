// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Read copies len(b) bytes of a peer's region, from offset bytes behind its beginning on,
// to b. Every word of 8 bytes is read at once; all of them are not. With the Incarnation
// that Lookup has found, it reads that registration and no other: after a restart of the
// peer it fails with ErrPeerRestarted. The bytes travel as one operation, whose call
// keeps a copy until it ends.
func (p *Peer) Read(ctx context.Context, r RemoteRegion, offset uint64, b []byte) error {
	err := p.transfer(ctx, r, offset, len(b), calls.Call{Verb: wire.VerbRead, Op: uint8(atomic.Read), Result: b})
	return later(err, func(result []byte) struct{} {
		copy(b, result)
		return struct{}{}
	})
}

// Write copies b to a peer's region, from offset bytes behind its beginning on. Every
// word of 8 bytes changes at once; all of them do not. It is one operation, which runs
// exactly once, or the error says what is known of it; of one that failed with
// ErrOutcomeUnknown, a part may have been written. It is bound to a registration as Read
// is.
func (p *Peer) Write(ctx context.Context, r RemoteRegion, offset uint64, b []byte) error {
	return p.transfer(ctx, r, offset, len(b), calls.Call{Verb: wire.VerbWrite, Op: uint8(atomic.Write), Operand: b})
}

// transfer runs a remote read or write of n bytes.
func (p *Peer) transfer(ctx context.Context, r RemoteRegion, offset uint64, n int, c calls.Call) error {
	if err := p.there(); err != nil {
		return err
	}
	if err := checkTransfer(r, offset, n, c.Verb); err != nil {
		return errno.Unsent(err)
	}
	c.Datatype, c.Count = uint8(atomic.Uint8), uint32(n)
	c.Key, c.Incarnation, c.Offset = r.Key, r.Incarnation, r.Base+offset
	err := p.to.Do(ctx, c)
	if err == nil {
		return nil
	}
	return explain(err, r, fmt.Sprintf("%v of %d bytes at %#x of %s", c.Verb, n, offset, named(r)),
		memory.Needs(c.Verb, c.Op))
}

// explain has the error of an operation on a region say which call it is of, in the words
// of the caller. If the region was not filled in, the error says so. A region may have
// the key 0, so the peer is asked first. need are the rights that the operation takes.
func explain(err error, r RemoteRegion, call string, need mr.Access) error {
	if err == nil {
		return nil
	}
	if r == (RemoteRegion{}) && errors.Is(err, ErrNoKey) {
		return fmt.Errorf("%w: the RemoteRegion is a zero value: want one that Peer.Lookup has found", err)
	}
	if oe, is := errors.AsType[*OpError](err); is {
		oe.Op = call
		if errors.Is(err, ErrAccess) {
			return refusedRight(err, r, need)
		}
		if errors.Is(err, ErrMisaligned) { // words are told by their index, so this is not the caller's doing
			return fmt.Errorf("%w: the region does not begin at a multiple of that: have its owner register it at a "+
				"multiple of 8, or of 16 for words of 16 bytes (mr.Options.Offset)", err)
		}
		return err
	}
	return errno.Line("xdpfab: %s: %w", call, err)
}

// refusedRight adds to the error of a region that does not grant a right which ones the
// operation takes, and which ones the region grants, if that is known.
func refusedRight(err error, r RemoteRegion, need mr.Access) error {
	switch {
	case r.Access == 0: // it was not looked up
		return fmt.Errorf("%w: it takes %s: have its owner grant that (mr.Options.Access), and use its authorization "+
			"key if it has one (DomainAttr.AuthKey)", err, inWords(need))
	case need&^r.Access != 0:
		return fmt.Errorf("%w: it takes %s, and the region grants %s: have its owner grant that (mr.Options.Access)",
			err, inWords(need), inWords(r.Access))
	}
	return fmt.Errorf("%w: the region grants %s, but its authorization key is another one, or Signal.Region does not "+
		"grant write: want the key of its owner (DomainAttr.AuthKey)", err, inWords(r.Access))
}

// inWords names rights.
func inWords(a mr.Access) string {
	return [...]string{"nothing", "read", "write", "read and write"}[a&(mr.RemoteRead|mr.RemoteWrite)]
}

// checkTransfer refuses what no region could execute.
func checkTransfer(r RemoteRegion, offset uint64, n int, verb wire.Verb) error {
	switch {
	case n > math.MaxUint32:
		return errno.Refuse(ErrTooMany, "xdpfab: %v of %d bytes: want at most %d, take them in parts", verb, n,
			math.MaxUint32)
	case offset > math.MaxUint64-r.Base || r.Size != 0 && (uint64(n) > r.Size || offset > r.Size-uint64(n)):
		return outside(verb.String(), n, offset, r)
	}
	return nil
}

// RemoteBytes is a region in a peer's memory as bytes: an [io.ReaderAt] and an
// [io.WriterAt], for [io.NewSectionReader], for example.
type RemoteBytes struct {
	ctx    context.Context
	peer   *Peer
	region RemoteRegion
}

// BytesAt returns the bytes of a peer's region. r.Size says how many there are. The
// context is that of all reads and writes. BytesAt sends nothing.
func BytesAt(ctx context.Context, p *Peer, r RemoteRegion) *RemoteBytes {
	return &RemoteBytes{ctx: ctx, peer: p, region: r}
}

// Size returns the number of bytes.
func (r *RemoteBytes) Size() int64 {
	if r == nil {
		return 0
	}
	return int64(min(r.region.Size, math.MaxInt64))
}

// mostAtOnce is how many bytes RemoteBytes moves by one operation.
const mostAtOnce = 1 << 20

// ReadAt implements [io.ReaderAt]: it reads by Peer.Read, a MiB at a time. At the end of
// the region the error is io.EOF.
func (r *RemoteBytes) ReadAt(b []byte, off int64) (n int, err error) {
	if err := r.sized(); err != nil {
		return 0, err
	}
	rest := r.Size() - off
	switch {
	case off < 0:
		return 0, outside("read", len(b), off, r.region)
	case rest < int64(len(b)):
		b, err = b[:max(rest, 0)], io.EOF
	}
	n, failure := r.parts(b, off, r.peer.Read)
	if failure != nil {
		err = failure
	}
	return n, err
}

// WriteAt implements [io.WriterAt]: it writes by Peer.Write, a MiB at a time. It returns
// how many bytes are certain to have been written; the error says what is known of the
// MiB behind them. Bytes that do not fit the region are refused with ErrOutOfBounds, and
// then none is written.
func (r *RemoteBytes) WriteAt(b []byte, off int64) (n int, err error) {
	if err := r.sized(); err != nil {
		return 0, err
	}
	if off < 0 || int64(len(b)) > r.Size()-off {
		return 0, outside("write", len(b), off, r.region)
	}
	return r.parts(b, off, r.peer.Write)
}

// sized refuses a region whose size is not known: its end would be its beginning.
func (r *RemoteBytes) sized() error {
	if err := r.there(); err != nil || r.region.Size > 0 {
		return err
	}
	return errno.Unsent(errno.Refuse(ErrArgument, "xdpfab: BytesAt of %s: its size is not known: want a RemoteRegion "+
		"of Peer.Lookup, or one with Size", named(r.region)))
}

// outside is the error of a read or a write of bytes that a region does not have.
func outside[N int64 | uint64](what string, n int, off N, r RemoteRegion) error {
	return errno.Unsent(fmt.Errorf("xdpfab: %s of %d bytes at %d of %s, which has %d bytes: %w: want them to end "+
		"at %d or before, or a longer region", what, n, off, named(r), r.Size, ErrOutOfBounds, r.Size))
}

// parts moves b in parts, up to the first that fails.
func (r *RemoteBytes) parts(b []byte, off int64, move func(context.Context, RemoteRegion, uint64, []byte) error) (n int,
	err error) {
	for n < len(b) {
		part := b[n:min(n+mostAtOnce, len(b))]
		if err := move(r.ctx, r.region, uint64(off)+uint64(n), part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}
