// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Place is where the words of a primitive lie. All programs that share the primitive name
// the same place. New memory is all zero, and a primitive needs that. Sizes of
// primitives, such as MutexBytes, are multiples of 64, so one primitive can lie right
// behind another.
//
// Primitives must not overlap. Another primitive, or data, at the very offset of a
// primitive is refused with ErrLayout. A primitive at an offset within another one is
// refused only if the word at that offset is not 0 at that time. Otherwise nothing
// notices, and the primitives destroy each other.
type Place struct {
	Home   xdpfab.Home // a *xdpfab.Peer, or a *xdpfab.Cluster
	Region string
	Offset uint64 // in bytes, from the beginning of the region: a multiple of 64
}

// The first two words of every part. The mark is 0 in new memory, where the first program
// writes it; all programs have to agree upon it: see markOf. The epoch is the time at
// which that happened, in nanoseconds of that program's clock.
const (
	markWord = iota
	epochWord
	bodyWord // the first word of the part's own
)

// placeBytes is what offsets and sizes of parts are multiples of: a cache line.
const placeBytes = 64

// bytesOf returns the size of a part of so many words, up to where another can begin.
func bytesOf(words int) int { return (8*words + placeBytes - 1) / placeBytes * placeBytes }

// mostWords is the most words or cells that a part has besides its head: its memory is
// read at once.
const mostWords = 1 << 16

// part is what all parts have: a place, and the memory that is there.
type part struct {
	place Place
	mark  uint64
	size  uint64 // in words
	asked string // its parameters, for errors

	mu     sync.Mutex
	now    *memory // nil if it has to be found
	epoch  uint64  // of the memory that was found last
	newest uint64  // no number that this program has seen is greater
}

// memory is the words of a part in one registration of its region. It never changes,
// except for what is found out about the home: after a restart another one is found.
type memory struct {
	words xdpfab.RemoteVector[uint64]
	cells xdpfab.RemoteVector[xdpfab.U128] // the same bytes, two words at a time
	first uint64                           // of the words
	epoch uint64

	polled atomic.Bool // nobody can wait at the home
}

// at returns a word by its number in the part.
func (m *memory) at(word uint64) xdpfab.Remote[uint64] { return m.words.At(m.first + word) }

// cell returns two words that change together: those of the numbers 2n and 2n+1.
func (m *memory) cell(n uint64) xdpfab.Remote[xdpfab.U128] { return m.cells.At(m.first/2 + n) }

// newPart finds the memory of a part, of so many words.
func newPart(ctx context.Context, at Place, k kind, size uint64, parameters ...uint64) (*part, error) {
	if err := at.check(k); err != nil {
		return nil, err
	}
	sum := fnv.New32a()
	_ = binary.Write(sum, binary.LittleEndian, parameters)
	p := &part{place: at, size: size, mark: markOf(k, sum.Sum32()), asked: k.with(parameters)}
	if _, err := p.memory(ctx); err != nil {
		return nil, at.put(at.of("New"+k.bare()), err)
	}
	return p, nil
}

// check refuses a place that no part can have.
func (at Place) check(k kind) error {
	switch {
	case at.Home == nil:
		return errno.Refuse(ErrParameter, "xdpfab: %s without a home: want Place.Home, a peer or a cluster",
			at.of("New"+k.bare()))
	case at.Region == "":
		return errno.Refuse(ErrParameter, "xdpfab: %s%s: want Place.Region, the name of a region there",
			at.of("New"+k.bare()), on(at.Home))
	case at.Offset%placeBytes != 0:
		return errno.Refuse(ErrParameter, "xdpfab: %s%s: want an offset that is a multiple of %d",
			at.of("New"+k.bare()), on(at.Home), placeBytes)
	}
	return nil
}

// memory returns the memory, which it finds at first and after a restart.
func (p *part) memory(ctx context.Context) (*memory, error) {
	if err := errno.NoContext(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	m, newest := p.now, p.newest
	p.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m, err := p.find(ctx, newest)
	for errors.Is(err, xdpfab.ErrPeerRestarted) && ctx.Err() == nil { // it was asked when it died
		m, err = p.find(ctx, newest)
	}
	if err != nil { // the part itself is as it was
		return nil, certain(ctx, err, xdpfab.ErrNotExecuted)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.epoch != p.epoch && m.epoch <= newest {
		return nil, errno.Refuse(ErrClock,
			"the numbers of new memory would begin at %d, after %d: compare the clocks of the nodes, "+
				"and clear the region once they agree", m.epoch, newest)
	}
	p.now, p.epoch, p.newest = m, m.epoch, max(p.newest, m.epoch)
	return m, nil
}

// saw records a number, below which those of other memory must not begin.
func (p *part) saw(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = max(p.newest, number)
}

// anew reports whether the memory is other than the one that was told of, by its epoch,
// and notes that it is told of now.
func (p *part) anew(told *uint64, m *memory) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := *told
	*told = m.epoch
	return was != m.epoch
}

// restarted reports whether an operation failed because its registration is gone. Then
// the memory has to be found again.
func (p *part) restarted(m *memory, err error) bool {
	if !errors.Is(err, xdpfab.ErrPeerRestarted) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == m {
		p.now = nil
	}
	return true
}

// run calls f with the memory, and again after a restart: f has no effect, or may have it
// twice, or its error says that it had none.
func (p *part) run(ctx context.Context, f func(m *memory) error) error {
	for {
		m, err := p.memory(ctx)
		if err != nil {
			return err
		}
		if err = f(m); !p.restarted(m, err) || ctx.Err() != nil {
			return err
		}
	}
}

// look is run for an f that changes nothing, so a failure leaves nothing unknown.
func (p *part) look(ctx context.Context, f func(m *memory) error) error {
	return certain(ctx, p.run(ctx, f), xdpfab.ErrNotExecuted)
}

// find finds the memory, and marks it if it is new. Since the words are still there when
// it has found the cells, both are of the same registration.
func (p *part) find(ctx context.Context, newest uint64) (*memory, error) {
	words, err := xdpfab.Vector[uint64](ctx, p.place.Home, p.place.Region)
	if err != nil {
		return nil, err
	}
	cells, err := xdpfab.Vector[xdpfab.U128](ctx, p.place.Home, p.place.Region)
	if err != nil {
		return nil, err
	}
	m := &memory{words: words, cells: cells, first: p.place.Offset / 8}
	if n := words.Len(); m.first > n || n-m.first < p.size {
		return nil, errno.Refuse(xdpfab.ErrOutOfBounds, "it takes %d bytes, and the region ends at offset %d: want a "+
			"longer region, or another offset", 8*p.size, 8*n)
	}
	mark, err := p.found(ctx, m)
	if err == nil && mark == 0 {
		mark, err = exchange(ctx, m.at(markWord), 0, p.mark)
	}
	switch {
	case err != nil:
		return nil, err
	case mark != 0 && mark != p.mark:
		return nil, p.otherPart(mark)
	}
	epoch := max(uint64(time.Now().UnixNano()), newest+1)
	was, err := exchange(ctx, m.at(epochWord), 0, epoch)
	if m.epoch = was; was == 0 {
		m.epoch = epoch
	}
	return m, err
}

// found returns the mark of the memory. Without a mark all of it has to be zero, or it
// belongs to something else.
func (p *part) found(ctx context.Context, m *memory) (mark uint64, err error) {
	all := make([]uint64, p.size)
	if err := m.words.LoadRange(ctx, m.first, all); err != nil || all[markWord] != 0 {
		return all[markWord], err
	}
	used := slices.IndexFunc(all, func(w uint64) bool { return w != 0 })
	if used < 0 {
		return 0, nil
	}
	if mark, err = m.at(markWord).Load(ctx); mark == 0 && err == nil { // none has come meanwhile
		err = errno.Refuse(ErrLayout,
			"data is at offset %d: want memory that is all zero", p.place.Offset+8*uint64(used))
	}
	return mark, err
}

// exchange compares and swaps a word, and returns what it was.
func exchange(ctx context.Context, w xdpfab.Remote[uint64], old, new uint64) (was uint64, err error) {
	was, _, err = w.CompareAndExchange(ctx, old, new)
	return xdpfab.Settle(ctx, was, err)
}
