// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// Where the other parts are, in bytes, and how large.
const (
	electionAt  = 16384
	queueAt     = 20480
	queueRoom   = 4
	barrierAt   = 24576
	countdownAt = 28672
	tasks       = 4
	onceAt      = 32768 // of the first; the others follow
	onces       = 8
	limiterAt   = 40960
	quota       = 20
)

// others are parts of which nobody waits long for another.
type others struct {
	election  *sync.Election
	queue     *sync.Queue
	barrier   *sync.Barrier
	countdown *sync.Countdown
	onces     [onces]*sync.Once
	limiter   *sync.Limiter
}

func othersAt(ctx context.Context, at func(offset uint64) sync.Place, party, parties int) (o others, err error) {
	var errs [5 + onces]error
	o.election, errs[0] = sync.NewElection(ctx, at(electionAt), partsLease)
	o.queue, errs[1] = sync.NewQueue(ctx, at(queueAt), queueRoom)
	o.barrier, errs[2] = sync.NewBarrier(ctx, at(barrierAt), parties, party)
	o.countdown, errs[3] = sync.NewCountdown(ctx, at(countdownAt), tasks)
	o.limiter, errs[4] = sync.NewLimiter(ctx, at(limiterAt), 1, quota, 100*365*24*time.Hour) // no period ends
	for i := range o.onces {
		o.onces[i], errs[5+i] = sync.NewOnce(ctx, at(onceAt+uint64(i)*sync.OnceBytes), partsLease)
	}
	return o, errors.Join(errs[:]...)
}

// number returns a number that no process has used before.
func (s *sharer) number() uint64 { return uint64(monotonic())<<8 | uint64(s.party) }

// lead leads for a while, and asks who leads.
func (s *sharer) lead(ctx context.Context, e *sync.Election) error {
	campaign := func(ctx context.Context) (*sync.Held, error) { return e.Campaign(ctx, s.number()) }
	return s.hold(ctx, ofElection, campaign, func() error {
		asked := monotonic()
		_, token, _, err := e.Leader(ctx)
		return s.claim(err, claim{From: asked, Token: token, Of: ofLeader})
	})
}

// pass puts a value into the queue and takes one, if there are room and a value.
func (s *sharer) pass(ctx context.Context, q *sync.Queue) error {
	v := s.number()
	if err := s.claim(nil, claim{From: monotonic(), Token: v, Of: ofPut}); err != nil {
		return err
	}
	if _, err := q.TryPut(ctx, v); err != nil {
		return err
	}
	v, ok, err := q.TryTake(ctx)
	if !ok {
		return err
	}
	return s.claim(err, claim{To: monotonic(), Token: v, Of: ofTake})
}

// unknownRound is more than any round that is reached: a process does not know how far
// the one before it came.
const unknownRound = 1 << 40

// shortAwait is for how long a process waits for the others at first. The longer it
// waited in vain, the longer it waits the next time: a busy machine may need that.
const shortAwait = 100 * time.Millisecond

// meet waits for the other parties, and goes on with something else if they do not come.
func (s *sharer) meet(ctx context.Context, b *sync.Barrier) error {
	party := uint64(s.parties)<<8 | uint64(s.party)
	if err := s.claim(nil, claim{From: monotonic(), Token: s.reach<<16 | party, Of: ofArrival}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	round, err := b.Await(ctx)
	switch {
	case err == nil:
		s.reach, s.patience = round+1, shortAwait
		return s.claim(nil, claim{To: monotonic(), Token: round<<16 | party, Of: ofRound})
	case ctx.Err() != nil:
		s.patience = min(2*s.patience, patience/4)
		return nil
	}
	return err
}

// countDown marks the next task as done, and looks whether all are.
func (s *sharer) countDown(ctx context.Context, c *sync.Countdown) error {
	task := (s.party + s.marked) % tasks
	s.marked++
	if err := s.claim(nil, claim{From: monotonic(), Token: uint64(task), Of: ofTask}); err != nil {
		return err
	}
	if err := c.Done(ctx, task); err != nil {
		return err
	}
	left, err := c.Left(ctx)
	if left > 0 {
		return err
	}
	return s.claim(err, claim{To: monotonic(), Of: ofLast})
}

// once gets the result of a function that the first process runs.
func (s *sharer) once(ctx context.Context, all [onces]*sync.Once) error {
	i := rand.IntN(onces)
	result, err := all[i].Do(ctx, func(context.Context, uint64) (uint64, error) {
		return s.number()*onces + uint64(i), nil
	})
	return s.claim(err, claim{Token: result, Of: ofResult})
}

// limit asks for the admission of a request.
func (s *sharer) limit(ctx context.Context, l *sync.Limiter) error {
	ok, err := l.Allow(ctx, "all", 1)
	if !ok {
		return err
	}
	return s.claim(err, claim{Of: ofAdmission})
}
