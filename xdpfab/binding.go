// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/mr"
)

// HandleOption is an option of Word and Vector. A nil one stands for none.
type HandleOption func(*binding)

// AutoRebind makes a handle look up its region again when the peer has restarted, or has
// registered the region again. The handle then repeats an operation that did not run. Use
// it for memory that may start over, such as a counter that is only compared with its own
// past. Do not use it for a lock, whose owner has to learn of the restart.
func AutoRebind() HandleOption { return func(b *binding) { b.auto = true } }

// binding ties a handle, and its copies, to the registration that it was made from.
type binding struct {
	home Home
	name string                // of the region; empty for a handle that was made from a key
	size uint64                // bytes that the region must have
	auto bool                  // AutoRebind
	at   atomic.Pointer[place] // the registration; replaced by rebind
}

// place is a registration of a region.
type place struct {
	RemoteRegion

	peer *Peer // that has it
}

// Home is where a region is found by its name: a Peer, or a Cluster.
type Home interface {
	find(ctx context.Context, region string) (*place, error)
	// moved reports whether the region is expected at another peer by now. err is the
	// failure of an operation on it.
	moved(p *place, err error) bool
}

func (p *Peer) find(ctx context.Context, region string) (*place, error) {
	if err := p.there(); err != nil {
		return nil, err
	}
	r, err := p.lookup(ctx, region)
	if errors.Is(err, ErrNoRegion) {
		return nil, p.without(ctx, region, err)
	}
	if err != nil {
		return nil, err
	}
	return &place{r, p}, nil
}

// without adds to the error of a region that the peer does not publish which it does.
func (p *Peer) without(ctx context.Context, region string, err error) error {
	list, failed := p.Regions(ctx)
	if failed != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: the peer publishes none", err)
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = strconv.Quote(r.Name)
	}
	slices.Sort(names)
	const most = 20
	return fmt.Errorf("%w%s: the peer has %s", err, errno.DidYouMean(strconv.Quote(region), names),
		errno.List(names, most))
}

func (p *Peer) moved(*place, error) bool { return false }

// bind returns a binding to a registration that was found at a home.
func bind(home Home, at *place, size uint64, options []HandleOption) *binding {
	b := &binding{home: home, name: at.Name, size: size}
	b.at.Store(at)
	for _, o := range options {
		if o != nil {
			o(b)
		}
	}
	return b
}

// rebind looks the region up again.
func (b *binding) rebind(ctx context.Context) error {
	if b.name == "" {
		return errno.Unsent(errno.Refuse(ErrNotImplemented,
			"xdpfab: a handle that was made from a key cannot be bound again: find the region by its name"))
	}
	r, err := b.home.find(ctx, b.name)
	if err != nil {
		return err
	}
	if r.Size < b.size {
		return errno.Unsent(errno.Refuse(ErrOutOfBounds,
			"xdpfab: region %q now has %d bytes, want at least %d", b.name, r.Size, b.size))
	}
	b.at.Store(r)
	return nil
}

// mostRebinds is the most restarts in a row that one operation survives.
const mostRebinds = 3

// after decides on the failure of an operation on the registration r. It returns the
// error to report, which says which call it is of, and whether to try again instead. need
// are the rights that the operation takes.
func (b *binding) after(ctx context.Context, err error, r *place, attempt int, call string,
	need mr.Access) (error, bool) {
	var oe *OpError
	if !errors.As(err, &oe) {
		return explain(err, r.RemoteRegion, call, need), false
	}
	gone := errors.Is(err, ErrPeerRestarted) || b.home.moved(r, err)
	err = explain(err, r.RemoteRegion, call, need)
	if !b.auto || attempt >= mostRebinds || !gone || !errors.Is(oe.Certainty, ErrNotExecuted) {
		return err, false
	}
	if again := b.rebind(ctx); again != nil {
		return errno.Line("%w; to bind it again: %w", err, again), false
	}
	return nil, true
}
