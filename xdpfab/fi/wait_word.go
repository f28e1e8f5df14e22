// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/progress"
	"github.com/xdpfab/xdpfab/mr"
)

// watch is those that wait for words of one region. It implements mr.Watcher.
//
// No change is missed. Who applies an operation changes the word, then passes a full
// barrier, then looks whether somebody waits. Who comes to wait counts itself, which is a
// full barrier too, and then looks at the word. If the look of the first came before the
// second was counted, then the change came before the second looks. A daemon or the XDP
// program that applies an operation counts it after the change. This process looks at the
// count, again whenever that changes, and does from there on what is said of the first.
type watch struct {
	dom      *Domain
	region   *mr.Region
	sleepers sleepers

	mu   sync.Mutex // held while one looks at the memory, and taken after the sleepers'
	over bool       // the region is closed: its memory may be gone
}

// awaited is the word that a goroutine waits for. Under watch.mu.
type awaited struct {
	msg    *Msg
	target []byte // in the region
	now    [wide]byte
	met    bool // now was what is waited for; nobody looks any more
}

// wide is the size of the largest element, bytes.
const wide = 32

// WaitWord returns when a word of an open region of the domain is as m asks for: when the
// compare operation m.Op, from atomic.Cswap to atomic.CswapGT, with the comparand
// m.Compare would change it. So atomic.Cswap waits until the word equals the comparand,
// and atomic.CswapLE until the comparand is less than it or equal. The word is the
// element of m.Datatype at m.Offset, which counts as for peers; its value then is stored
// in m.Result unless that is nil; if the context ends first, that is the value seen last.
// No other field of m may be set.
//
// Operations of peers wake the caller once they are applied. So does [mr.Region.Changed],
// which the program calls after it has changed the region itself. A value that is
// replaced before the caller is woken, as in the middle of a burst, may go unseen. The
// end of the context, of the region or of the domain ends the wait with an error. With
// manual progress the call makes progress.
//
// A region costs its peers one look for each burst, whether anybody waits or not. If a
// daemon has mapped it, the daemon counts what peers do from the first wait on, as for a
// counter of BindRegion; so a region that is to outlive the program is refused. The XDP
// program counts what it does to a resident region: a caller that begins to wait while
// peers are at work may wake a millisecond late.
func (d *Domain) WaitWord(ctx context.Context, r *mr.Region, m *Msg) error {
	if err := d.there(); err != nil {
		return err
	}
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	if err := m.checkAwaited(); err != nil {
		return err
	}
	w, err := d.watch(r)
	if err != nil {
		return err
	}
	return w.wait(ctx, m)
}

// checkAwaited refuses what nobody can wait for.
func (m *Msg) checkAwaited() error {
	if m == nil {
		return errno.Refuse(ErrLength, "xdpfab: the message is nil: want a Msg")
	}
	if m.Op < atomic.Cswap || m.Op > atomic.CswapGT || !atomic.Valid(atomic.Compare, m.Op, m.Datatype) {
		return errno.Refuse(ErrOpNotSupported,
			"xdpfab: wait by %v on %v: want one of the comparisons %v to %v, and a datatype that it "+
				"is defined on", m.Op, m.Datatype, atomic.Cswap, atomic.CswapGT)
	}
	if m.Buf != nil || m.RMA != nil || m.Pieces != nil || m.Trigger != nil || m.Count > 1 {
		return errno.Refuse(ErrLength,
			"xdpfab: wait for a word with an operand, extents, pieces, a trigger or more elements "+
				"than one: want none of these")
	}
	size := m.Datatype.Size()
	if len(m.Compare) != size || m.Result != nil && len(m.Result) != size {
		return errno.Refuse(ErrLength,
			"xdpfab: wait for a %v with a comparand of %d bytes and a result of %d: want %d, and a "+
				"result of as many or none", m.Datatype, len(m.Compare), len(m.Result), size)
	}
	return nil
}

// watch returns the watch of an open region of the domain.
func (d *Domain) watch(r *mr.Region) (*watch, error) {
	if r == nil {
		return nil, errno.Refuse(ErrForeign,
			"xdpfab: wait without a region: want one of domain %s, such as Service.Region",
			d.label())
	}
	if w, is := r.Watcher().(*watch); is && w.dom == d {
		return w, nil
	}
	defer d.stay()()
	if r.Closed() {
		return nil, d.regionClosed(r)
	}
	if !slices.Contains(d.node.Table.All(), r) {
		return nil, errno.Refuse(ErrForeign,
			"xdpfab: wait for a word of region %v, of another domain: want an open region of domain %s", r,
			d.label())
	}
	// Others apply operations here, which say so when they count.
	if d.node.Dev.GuestRing() != nil || r.Memory().Kind() == mr.KindResident {
		if _, err := d.observe(r); err != nil {
			return nil, err
		}
	}
	w := &watch{dom: d, region: r}
	r.Watch(w)
	if w, is := r.Watcher().(*watch); is {
		return w, nil
	}
	return nil, d.regionClosed(r)
}

// regionClosed is the error of a region that is closed.
func (d *Domain) regionClosed(r *mr.Region) error {
	return d.errClosed(fmt.Sprintf("region %v", r), "register its memory again, or serve it again")
}

// wait waits for a word of the region.
func (w *watch) wait(ctx context.Context, m *Msg) error {
	size := m.Datatype.Size()
	target, fault := w.region.Resolve(m.Offset, uint64(size), uint64(size), m.Datatype.Align(), 0)
	switch fault {
	case mr.FaultNone:
	case mr.FaultAlignment:
		return errno.Refuse(ErrMisaligned,
			"xdpfab: wait for a %v at offset %d of region %v: want a multiple of %d", m.Datatype,
			m.Offset, w.region, m.Datatype.Align())
	default:
		return errno.Refuse(ErrOutOfBounds,
			"xdpfab: wait for a %v at offset %d of region %v: want it within the %d bytes of the region",
			m.Datatype, m.Offset, w.region, w.region.Len())
	}
	w.dom.Progress() // with manual progress, a wait that is over at once makes some, too
	s, at := freeSleepers.Get().(*sleeper), &awaited{msg: m, target: target}
	s.word, s.stepper = at, w.dom.node.Steppers[0]
	err := w.sleepers.sleep(ctx, w, s)
	if err != nil {
		w.look(at) // for changes that the region was not told of
	}
	copy(m.Result, at.now[:]) // nobody looks any more
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("xdpfab: wait for the %v at offset %d of region %v: %w", m.Datatype, m.Offset, w.region, err)
	}
	return err
}

// satisfied reports whether the word has been seen as the sleeper wants it.
func (w *watch) satisfied(s *sleeper) bool {
	return w.look(s.word)
}

// look reads a word, and reports whether it has been seen as wanted.
func (w *watch) look(at *awaited) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := at.msg
	if !at.met && !w.over {
		atomic.KernelOf(atomic.Fetch, atomic.Read, m.Datatype)(at.target, nil, nil, at.now[:])
		at.met = atomic.Applied(m.Op, m.Datatype, at.now[:], m.Compare, m.Compare)
	}
	return at.met
}

func (w *watch) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return w.dom.regionClosed(w.region)
	}
	return nil
}

func (w *watch) park(ctx context.Context, sig *progress.Signal) error {
	return w.dom.node.Steppers[0].Wait(ctx, sig)
}

// Changed implements mr.Watcher.
func (w *watch) Changed() { w.sleepers.raise(w) }

// Closed implements mr.Watcher.
func (w *watch) Closed() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.sleepers.wakeAll()
}
