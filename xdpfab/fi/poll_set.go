// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// PollSet finds which of several completion queues and counters of a domain have
// news; it is the poll set and the wait set of fi_poll(3). Any number of goroutines may
// use it.
type PollSet struct {
	object

	mu      sync.Mutex
	members []*member
	turn    int // member that Poll looks at first
}

// Pollable is what a PollSet takes: a CompletionQueue or a Counter.
type Pollable interface {
	waitable
	there() error
	base() *object
	await(w *sleeper) // sets what w wants: anything new from now on
}

func (q *CompletionQueue) base() *object { return &q.object }
func (c *Counter) base() *object         { return &c.object }

func (q *CompletionQueue) await(w *sleeper) { w.want = 1 }
func (c *Counter) await(w *sleeper)         { w.want, w.errs = c.value.Load()+1, c.errs.Load() }

// member is a queue or counter in a set.
type member struct {
	Pollable
	context any
	seen    sleeper // wants what is new since the latest Poll
}

// NewPollSet makes an empty poll set (fi_poll_open).
func (d *Domain) NewPollSet() (*PollSet, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	p := &PollSet{}
	p.open(d, "poll set", nil)
	return p, nil
}

// Add takes a completion queue or a counter into the set (fi_poll_add). Poll returns
// context for it. A queue or counter cannot be closed as long as it is in a set.
func (p *PollSet) Add(o Pollable, context any) error {
	if err := p.there(); err != nil {
		return err
	}
	if o == nil {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: poll set: nothing to add: want a completion queue or a counter")
	}
	if err := o.there(); err != nil {
		return err
	}
	if o.base().dom != p.dom {
		return fmt.Errorf("xdpfab: poll set: the %s: %w: want one of the set's own", o.base().what, ErrForeign)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ended(); err != nil {
		return err
	}
	if p.find(o) >= 0 {
		return fmt.Errorf("xdpfab: poll set: the %s is in it already: %w", o.base().what, ErrBusy)
	}
	if err := o.base().hold(); err != nil {
		return err
	}
	m := &member{Pollable: o, context: context}
	o.await(&m.seen)
	p.members = append(p.members, m)
	return nil
}

// Del takes a queue or counter out of the set (fi_poll_del).
func (p *PollSet) Del(o Pollable) error {
	if err := p.there(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(o)
	if i < 0 {
		return fmt.Errorf("xdpfab: poll set: what is to be taken out is not in it: %w", codeOf(syscall.EINVAL))
	}
	p.members = slices.Delete(p.members, i, i+1)
	o.base().drop()
	return nil
}

// find returns the place of a member, or -1. p.mu is held.
func (p *PollSet) find(o Pollable) int {
	return slices.IndexFunc(p.members, func(m *member) bool { return m.Pollable == o })
}

// Poll makes progress, and writes the contexts of the members with news to contexts, as
// many as fit; it returns their number (fi_poll). A queue has news as long as a
// completion can be read, and a counter if its value has grown, or its failures have
// changed, since Poll last returned it, or since it was added.
func (p *PollSet) Poll(contexts []any) (int, error) {
	if err := p.there(); err != nil {
		return 0, err
	}
	if err := p.ended(); err != nil {
		return 0, err
	}
	p.dom.Progress()
	p.mu.Lock()
	defer p.mu.Unlock()
	n, first := 0, p.turn
	for i := range p.members {
		if n == len(contexts) {
			break
		}
		at := (first + i) % len(p.members)
		if m := p.members[at]; m.satisfied(&m.seen) {
			contexts[n] = m.context
			n++
			m.await(&m.seen)
			p.turn = at + 1 // so that with few contexts each member has its turn
		}
	}
	return n, nil
}

// Wait returns when a member has news, so that Poll will return it, or with the context's
// error (fi_wait). With manual progress the call makes progress. Members that were made
// with WaitNone or WaitYield are waited for as well.
func (p *PollSet) Wait(ctx context.Context) error {
	if err := p.there(); err != nil {
		return err
	}
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	sig := progress.NewSignal()
	st := p.dom.node.Steppers[0] // with manual progress it is that of all queues; otherwise pollers serve the others
	p.mu.Lock()
	members, sleepers := slices.Clone(p.members), make([]sleeper, len(p.members))
	for i, m := range members {
		w := &sleepers[i]
		w.signal, w.stepper, w.want, w.errs = &sig, st, m.seen.want, m.seen.errs
		m.base().waits.add(w)
		defer m.base().waits.drop(w)
	}
	p.mu.Unlock()
	if len(members) == 0 {
		return errno.Refuse(ErrNotEnabled, "xdpfab: wait for an empty poll set: add what to wait for")
	}
	p.dom.Progress()
	for {
		if err := p.ended(); err != nil {
			return err
		}
		for i, m := range members {
			if m.satisfied(&sleepers[i]) || sleepers[i].called.Load() {
				return nil
			}
		}
		if err := st.Wait(ctx, &sig); err != nil {
			return early(ctx, err, "news of %d queues and counters", len(members))
		}
		sig.Reset()
	}
}

// Close ends the use of the set. It reports ErrBusy as long as there is anything in it.
// Closing twice is no error.
func (p *PollSet) Close() error {
	if err := p.there(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.members); n > 0 && !p.closed.Load() {
		return errno.Refuse(ErrBusy,
			"xdpfab: poll set: %d queues and counters are in it, take them out with Del first", n)
	}
	return p.close()
}
