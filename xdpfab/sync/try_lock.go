// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
)

// tries is what earlier calls that wait for nobody have seen of holders.
type tries struct {
	mu   sync.Mutex
	at   *memory
	seen []sight // of the words that the holders write
}

// in returns what was seen of n words in some memory. The caller holds the lock.
func (t *tries) in(mem *memory, n uint64) []sight {
	if t.at != mem {
		t.at, t.seen = mem, make([]sight, n)
	}
	return t.seen
}

// TryLock gets the lock if it is free, and reports whether it did. It waits for nobody,
// and overtakes nobody who waits in Lock. If ok is false, h is nil.
//
// A lock is not free as long as the lease of a dead holder lasts, nor for the first lease
// in new memory. TryLock knows that a lease is over once calls of the same Mutex have
// seen for so long that nobody renews it. So only a program that calls TryLock again and
// again, or Lock, gets the lock of a dead holder.
//
// After an error the caller does not have the lock. If it is unknown whether the caller
// got it, TryLock waits until that is known. If ctx ends first, or the home is silent, a
// lock that the caller got nevertheless is given back as soon as the home answers.
func (m *Mutex) TryLock(ctx context.Context) (h *Held, ok bool, err error) {
	if err := m.there(); err != nil {
		return nil, false, err
	}
	defer m.named("TryLock", &err)
	for {
		if h, others, err := m.try(ctx); h != nil || others || err != nil {
			return h, h != nil, err
		}
	}
}

// try looks whether the lock is free, and takes it. It reports whether others have it, or
// want it. It returns nothing if another look makes sense.
func (m *Mutex) try(ctx context.Context) (h *Held, others bool, err error) {
	mem, err := m.memory(ctx)
	if err != nil {
		return nil, false, err
	}
	var now [queueWords - ticketWord]uint64
	if err := mem.words.LoadRange(ctx, mem.first+ticketWord, now[:]); err != nil {
		return nil, false, m.again(ctx, mem, err)
	}
	given, turn := now[0], now[turnWord-ticketWord]
	at := turn >> beatBits
	if at > given { // the turn of a ticket that nobody has yet
		h, err = m.take(ctx, mem, given+1)
		return h, false, err
	}
	left := now[leftWord-ticketWord+at%leftWords] == at && at > 0
	if !left && !m.tries.expired(mem, turn, m.lease) {
		return nil, true, nil
	}
	_, err = exchange(ctx, mem.at(turnWord), turn, (at+1)<<beatBits)
	return nil, false, m.again(ctx, mem, err)
}

// expired takes another look at the word of the turn into account, which a program has.
// Of a turn that nobody has there may be no look: who gets it does not write the word.
func (t *tries) expired(mem *memory, turn uint64, lease time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in(mem, 1)[0].expired(turn, lease)
}

// take takes a ticket whose turn it is, unless another program is faster.
func (m *Mutex) take(ctx context.Context, mem *memory, next uint64) (*Held, error) {
	began := time.Now()
	ticket, turn, err := m.ask(ctx, mem, mem.at(ticketWord).StartCompare(ctx, atomic.Cswap, next-1, next),
		func(was uint64) uint64 {
			if was != next-1 {
				return 0
			}
			return next
		})
	if err == nil && ticket != 0 && turn>>beatBits == ticket {
		return m.hold(ctx, mem, turnWord, turn, (ticket+1)<<beatBits, m.lease, began), nil
	}
	if ticket != 0 {
		mem.leave(ctx, ticket, m.lease)
	}
	return nil, m.again(ctx, mem, err)
}
