// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// Where the parts are in the memory of the home, in bytes.
const (
	partsRegion = "file"
	mutexAt     = 0
	counterAt   = 1024 // of the first shard; the others follow
	shards      = 2
	semaphoreAt = 4096
	permits     = 2
	lockAt      = 8192
	readers     = 3
	sequencerAt = 12288
	partsLease  = 500 * time.Millisecond
)

const (
	envClaims = "XDPFAB_SOAK_CLAIMS" // file: claims, one after the other
	envParty  = "XDPFAB_SOAK_PARTY"  // the number of the process, which its successor takes over, and how many there are
)

// claim is a time for which a process was sure to hold what a part gives, by the
// monotonic clock, which is the same for all processes: from after the call that got it
// to before the release, or to the end of the lease. Numbers of the sequencer are not
// held.
type claim struct {
	From, To int64 // in nanoseconds
	Token    uint64
	Of       uint64
}

// What claims are of.
const (
	ofMutex uint64 = iota
	ofSemaphore
	ofReader
	ofWriter
	ofSequencer
	ofElection
	ofLeader    // the token that an election tells
	ofPut       // a value before it is put into the queue
	ofTake      // a value that has been taken
	ofArrival   // before a party waits: the highest round that it may reach, and the party
	ofRound     // a round that a party has passed, and the party
	ofTask      // a task before it is marked as done
	ofLast      // all tasks were done
	ofResult    // a result of one of the functions that run once
	ofAdmission // a request that the limiter has admitted
	claimKinds
)

// shared are the parts that the processes share.
type shared struct {
	mutex     *sync.Mutex
	counter   *sync.Counter
	semaphore *sync.Semaphore
	lock      *sync.RWMutex
	sequencer *sync.Sequencer
	others
}

// sharedAt returns the parts at a home, for one of the parties.
func sharedAt(ctx context.Context, home *xdpfab.Peer, party, parties int) (s shared, err error) {
	at := func(offset uint64) sync.Place { return sync.Place{Home: home, Region: partsRegion, Offset: offset} }
	var shard []sync.Place
	for i := range uint64(shards) {
		shard = append(shard, at(counterAt+i*sync.CounterBytes))
	}
	var errs [6]error
	s.mutex, errs[0] = sync.NewMutex(ctx, at(mutexAt), partsLease)
	s.counter, errs[1] = sync.NewCounter(ctx, shard...)
	s.semaphore, errs[2] = sync.NewSemaphore(ctx, at(semaphoreAt), permits, partsLease)
	s.lock, errs[3] = sync.NewRWMutex(ctx, at(lockAt), readers, partsLease)
	s.sequencer, errs[4] = sync.NewSequencer(ctx, at(sequencerAt), 4)
	s.others, errs[5] = othersAt(ctx, at, party, parties)
	return s, errors.Join(errs[:]...)
}

func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// sharerMain takes the mutex, adds to the counter and uses the other parts again and
// again, as a guest of a daemon, until it is killed, or told to end by SIGTERM in the
// middle of nothing.
func sharerMain() error {
	stop, cancel := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer cancel()
	file, err := os.OpenFile(os.Getenv(envBook), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	claims, err := os.OpenFile(os.Getenv(envClaims), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	s := &sharer{book: &guestBook{file: file}, claims: claims, reach: unknownRound, patience: shortAwait}
	if _, err := fmt.Sscanf(os.Getenv(envParty), "%d/%d", &s.party, &s.parties); err != nil {
		return fmt.Errorf("%s=%q: %w", envParty, os.Getenv(envParty), err)
	}
	s.next = s.party * 3 // they begin with different parts
	for stop.Err() == nil {
		if err := s.share(stop); err != nil { // the daemon, or the home, is away at the moment
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

type sharer struct {
	book           *guestBook
	claims         io.Writer
	party, parties int
	next           int           // of its turns
	marked         int           // tasks
	reach          uint64        // the highest round that it may reach when it waits next
	patience       time.Duration // when it waits next
}

// share works with one domain until that, the home or a call fails.
func (s *sharer) share(stop context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := xdpfab.DomainAttr{Attach: fi.AttachAlways, Control: os.Getenv(fi.ControlEnv), GiveUp: lively}
	d, err := xdpfab.Open(ctx, veth.IfName, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.CloseAll()) }()
	home, err := d.Dial(ctx, os.Getenv(envAddress))
	if err != nil {
		return err
	}
	p, err := sharedAt(ctx, home, s.party, s.parties)
	if s.reach++; s.reach > unknownRound { // the round before may be reached although the call failed
		s.reach = unknownRound
	}
	for err == nil && stop.Err() == nil {
		err = s.turn(&p)
	}
	return err
}

// turn holds the mutex once, and adds to the counter meanwhile. Then it uses one of the
// other parts.
func (s *sharer) turn(p *shared) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.hold(ctx, ofMutex, p.mutex.Lock, func() (err error) {
		for range rand.IntN(4) {
			if err = s.add(ctx, p.counter); err != nil {
				break
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	nothing := func() error { return nil }
	turns := []func() error{
		func() error { return s.hold(ctx, ofSemaphore, p.semaphore.Acquire, nothing) },
		func() error { return s.hold(ctx, ofReader, p.lock.RLock, nothing) },
		func() error { return s.hold(ctx, ofWriter, p.lock.Lock, nothing) },
		func() error {
			number, err := p.sequencer.Next(ctx)
			return s.claim(err, claim{Token: number, Of: ofSequencer})
		},
		func() error { return s.lead(ctx, p.election) },
		func() error { return s.pass(ctx, p.queue) },
		func() error { return s.meet(ctx, p.barrier) },
		func() error { return s.countDown(ctx, p.countdown) },
		func() error { return s.once(ctx, p.onces) },
		func() error { return s.limit(ctx, p.limiter) },
	}
	s.next++
	return turns[s.next%len(turns)]()
}

// claim writes a claim, unless the call before has failed.
func (s *sharer) claim(err error, c claim) error {
	if err != nil {
		return err
	}
	return binary.Write(s.claims, binary.NativeEndian, c)
}

// hold gets something, works, claims the time, and releases it.
func (s *sharer) hold(ctx context.Context, of uint64, get func(context.Context) (*sync.Held, error),
	work func() error) error {
	held, err := get(ctx)
	if err != nil {
		return err
	}
	got := claim{From: monotonic(), Token: held.Token(), Of: of}
	err = work()
	if rand.IntN(50) == 0 {
		time.Sleep(partsLease * 3 / 2) // the lease is renewed
	}
	now := monotonic()
	got.To = min(now, now+int64(held.Left()))
	if got.To > got.From {
		if err := binary.Write(s.claims, binary.NativeEndian, got); err != nil {
			return err
		}
	}
	if e := held.Unlock(); !errors.Is(e, sync.ErrLost) { // it may be lost: then the claim is over before
		err = errors.Join(err, e)
	}
	return err
}

// add adds 1, and writes what is known of that into the book.
func (s *sharer) add(ctx context.Context, c *sync.Counter) error {
	if err := s.book.write(&s.book.posted); err != nil {
		return err
	}
	switch err := c.Add(ctx, 1); {
	case err == nil:
		return s.book.write(&s.book.acked)
	case errors.Is(err, xdpfab.ErrOutcomeUnknown):
		return err
	default:
		return errors.Join(err, s.book.write(&s.book.undone))
	}
}
