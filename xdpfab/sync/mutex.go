// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// MutexBytes is the size of a Mutex.
const MutexBytes = 8 * queueWords

// The words of a queue of programs, behind the mark and the epoch.
const (
	ticketWord = bodyWord + iota
	turnWord
	leftWord   // the first of those in which a ticket is recorded that nobody waits with
	queueWords = 32

	leftWords = queueWords - leftWord
)

// Mutex is a lock with a lease. Programs get it in the order in which they ask.
//
//	word 2   the ticket that was given last
//	word 3   the ticket whose turn it is (48 bits), and the beat of its holder (16 bits)
//	4 to 31  tickets that nobody waits with any more: ticket t in word 4 + t mod 28
//
// Invariant: the turn passes only from ticket t to t + 1, and only if the holder of t
// passes it on, has recorded that it left, or has not written for more than a lease. So
// of two holders, the earlier one's lease is over. New memory is all zero: it is the turn
// of ticket 0, which nobody has, so the first program waits for a lease. During that
// time, holders in former memory may still believe that they hold the lock.
//
// A program that dies while it waits, or holds the lock, costs those behind it a lease.
type Mutex struct {
	*part
	lease time.Duration

	tries tries
}

// NewMutex returns the lock at a place. All programs must name the same lease.
func NewMutex(ctx context.Context, at Place, lease time.Duration) (*Mutex, error) {
	return newMutex(ctx, at, kindMutex, 0, lease)
}

// newMutex returns a lock with more words behind it.
func newMutex(ctx context.Context, at Place, k kind, more uint64, lease time.Duration) (*Mutex, error) {
	if err := checkLease(k, lease); err != nil {
		return nil, err
	}
	p, err := newPart(ctx, at, k, queueWords+more, uint64(lease), more)
	return made(&Mutex{part: p, lease: lease}, err)
}

// Lock waits until the caller has the lock. After an error the caller does not have it.
// Held.Unlock releases the lock; so does the end of ctx.
//
// If the home is silent, Lock fails with ErrPeerSilent after GiveUp. A call that waits
// for its turn asks the home only now and then, so it may fail later, by a sixteenth of
// the lease and 1 s at most.
func (m *Mutex) Lock(ctx context.Context) (h *Held, err error) {
	if err := m.there(); err != nil {
		return nil, err
	}
	defer m.named("Lock", &err)
	for {
		if h, waited, err := m.attempt(ctx); h != nil || err != nil {
			return h, ended(ctx, err, waited)
		}
	}
}

// attempt asks for the lock once. It returns nothing if others went on without the
// caller, or the memory has to be found again. waited says for what it waited.
func (m *Mutex) attempt(ctx context.Context) (h *Held, waited string, err error) {
	waited = unanswered
	if ctx != nil && ctx.Err() != nil {
		waited = over
	}
	mem, err := m.memory(ctx)
	if err != nil {
		return nil, waited, err
	}
	began := time.Now()
	ticket, turn, err := m.ask(ctx, mem, mem.at(ticketWord).StartAdd(ctx, 1),
		func(sum uint64) uint64 { return sum })
	if ticket == 0 {
		return nil, waited, m.again(ctx, mem, err)
	}
	if err == nil && turn>>beatBits < ticket {
		if turn, began, err = m.wait(ctx, mem, ticket, turn); err != nil {
			waited = m.behind(turn>>beatBits, ticket)
		}
	}
	switch {
	case err != nil:
		mem.leave(ctx, ticket, m.lease)
		return nil, waited, m.again(ctx, mem, err)
	case turn>>beatBits != ticket:
		return nil, waited, nil
	}
	return m.hold(ctx, mem, turnWord, turn, (ticket+1)<<beatBits, m.lease, began), waited, nil
}

// behind says why a program with a ticket waits, and what it can do. at is the ticket
// whose turn it was.
func (m *Mutex) behind(at, ticket uint64) string {
	switch ahead := ticket - at; {
	case ahead == 0:
		return unanswered
	case at == 0:
		return fmt.Sprintf("the memory is new, and nobody gets its turn before a lease of %v is over: %s", m.lease,
			moreTime)
	case ahead == 1:
		return "another program " + doing[kindOf(m.mark)] + ": " + m.patience()
	default:
		return fmt.Sprintf("%d programs were ahead: %s", ahead, m.patience())
	}
}

// doing says what the program ahead does, by the kind of part.
var doing = map[kind]string{kindMutex: "had the lock", kindSemaphore: "was ahead", kindRWMutex: "was ahead",
	kindElection: "led", kindOnce: "ran the function"}

// patience is what a program can do that waits for holders.
func (m *Mutex) patience() string {
	return fmt.Sprintf("%s, or have the holder release it; a dead one has it for its lease of %v", moreTime, m.lease)
}

// ask waits for a ticket that an operation asks for, and returns the word of the turn as
// it was then. From the result of the operation, mine tells the ticket, or 0 for none.
// After an error the caller may have a ticket, with which it does not wait.
func (m *Mutex) ask(ctx context.Context, mem *memory, asked *xdpfab.Pending[uint64],
	mine func(uint64) uint64) (ticket, turn uint64, err error) {
	look := mem.at(turnWord).StartFetch(ctx, atomic.Read, 0) // runs after it, in the same round trip
	got, err := asked.Wait(ctx)
	if mem.disown(ctx, m.lease, got, err, mine) {
		return 0, 0, err
	}
	if got, err = xdpfab.Settle(ctx, got, err); err != nil {
		return 0, 0, err
	}
	turn, err = look.Wait(ctx)
	return mine(got), turn, err
}

// again returns an error, or nothing if another attempt makes sense. After an error the
// caller does not have the lock, so nothing is unknown.
func (m *Mutex) again(ctx context.Context, mem *memory, err error) error {
	if m.restarted(mem, err) {
		return nil
	}
	return certain(ctx, again(ctx, err), xdpfab.ErrNotExecuted)
}

// wait waits for the turn of a ticket, and gives the turn on for those who cannot. turn
// is the word of the turn that was seen. It returns that word as it was seen last, and a
// time before it wrote it, if it is its own turn.
//
// The home swaps the word for those who wait there, so the lock is on its way for one
// round trip. Now and then they look themselves: who is next may not be able to go on. At
// a home where nobody can wait they look again and again. Whenever the turn goes on,
// pauses begin anew, short for the next one, and longer for those behind it: so the lock
// is on its way for a part of the time for which it was held.
func (m *Mutex) wait(ctx context.Context, mem *memory, ticket, turn uint64) (own uint64, began time.Time,
	err error) {
	var (
		seen sight
		now  [1 + leftWords]uint64
		last uint64 // whose turn it was
	)
	// The next in line looks whether the one before it has left. To the others, the turn
	// that the caller saw says enough at first.
	next := turn>>beatBits+1 == ticket
	for p, looks := (pauses{most: m.lease / 16}), next; ; looks = true {
		if looks {
			if err := mem.words.LoadRange(ctx, mem.first+turnWord, now[:]); err != nil {
				return turn, began, err
			}
			turn = now[0]
		}
		at := turn >> beatBits
		if at > ticket {
			return turn, began, nil
		}
		began = time.Now()
		if at == ticket { // others may have seen that for some time
			was, err := exchange(ctx, mem.at(turnWord), turn, turn+1)
			if err != nil || was == turn {
				return turn + 1, began, err
			}
			continue
		}
		if left := now[1+at%leftWords] == at && at > 0; left || seen.expired(turn, m.lease) {
			if _, err := exchange(ctx, mem.at(turnWord), turn, (at+1)<<beatBits); err != nil {
				return turn, began, err
			}
			continue
		}
		swapped, over := mem.await(ctx, ticket<<beatBits, p.most)
		switch {
		case swapped && time.Since(began) < m.lease/2:
			return ticket<<beatBits + 1, began, nil
		case swapped, over: // late, as from a home that was silent: the beat after it counts
			continue
		}
		if at != last {
			p.begin(time.Duration(min(ticket-at, 1<<10)) * leastPause)
			last = at
		}
		if err := p.pause(ctx); err != nil {
			return turn, began, err
		}
	}
}

// await has the home swap the word of the turn, once it is a program's turn, to the same
// turn with the next beat, and reports whether it has, and whether the time for it is
// over. Neither is so if nobody can wait there, or too many do. If the answer got lost,
// the swap has run all the same: a look finds that.
func (m *memory) await(ctx context.Context, turn uint64, most time.Duration) (swapped, over bool) {
	if m.polled.Load() {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := m.at(turnWord).WaitCompareAndSwap(ctx, turn, turn+1)
	if errors.Is(err, xdpfab.ErrOpNotSupported) {
		m.polled.Store(true)
	}
	return err == nil, ctx.Err() != nil
}

// disown reports whether the caller does not wait until it is known whether it has a
// ticket: the home is silent, or ctx has ended. A ticket that nobody knows costs the
// others a lease, so it is left as soon as it is known: within a minute, or never.
func (m *memory) disown(ctx context.Context, lease time.Duration, got uint64, err error,
	mine func(uint64) uint64) bool {
	if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || ctx.Err() == nil && !errors.Is(err, xdpfab.ErrPeerSilent) {
		return false
	}
	go func() {
		ctx := context.WithoutCancel(ctx)
		if got, err := xdpfab.Settle(ctx, got, err); err == nil && mine(got) != 0 {
			m.leave(ctx, mine(got), lease)
		}
	}()
	return true
}

// leave records that nobody waits with a ticket. It does not wait for that itself.
func (m *memory) leave(ctx context.Context, ticket uint64, lease time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease/16)
	defer cancel()
	m.at(leftWord+ticket%leftWords).StartApply(ctx, atomic.Max, ticket)
}
