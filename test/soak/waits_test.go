// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// waitingParts are parts at one home, as a guest uses them.
type waitingParts struct {
	mutex     *sync.Mutex
	lock      *sync.RWMutex
	semaphore *sync.Semaphore
	election  *sync.Election
	once      *sync.Once
	barrier   *sync.Barrier
	countdown *sync.Countdown
	queue     *sync.Queue
}

// waitingAt is how far the parts are from each other, in bytes. The first five have a
// queue of locks.
const waitingAt, withLocks = 1024, 5

// newWaitingParts has another program behind a daemon use the parts.
func newWaitingParts(t *testing.T, w *world, host *daemon, self int) (p waitingParts, home *xdpfab.Peer) {
	t.Helper()
	var d *xdpfab.Domain
	must(t, w.wire.A.Do(func() (err error) {
		a := xdpfab.DomainAttr{Attach: fi.AttachAlways, Control: host.path, GiveUp: lively}
		d, err = xdpfab.Open(limited(t), w.wire.A.IfName, a)
		return err
	}))
	t.Cleanup(func() { must(t, d.CloseAll()) })
	home, err := d.Dial(limited(t), w.addr)
	must(t, err)
	const lease = 24 * time.Hour // nobody renews it, nor looks whether it is over
	at := func(i uint64) sync.Place { return sync.Place{Home: home, Region: "waits", Offset: waitingAt * i} }
	var errs [8]error
	ctx := limited(t)
	p.mutex, errs[0] = sync.NewMutex(ctx, at(0), lease)
	p.lock, errs[1] = sync.NewRWMutex(ctx, at(1), 3, lease)
	p.semaphore, errs[2] = sync.NewSemaphore(ctx, at(2), 1, lease)
	p.election, errs[3] = sync.NewElection(ctx, at(3), lease)
	p.once, errs[4] = sync.NewOnce(ctx, at(4), lease)
	p.barrier, errs[5] = sync.NewBarrier(ctx, at(5), 2, min(self, 1))
	p.countdown, errs[6] = sync.NewCountdown(ctx, at(6), 1)
	p.queue, errs[7] = sync.NewQueue(ctx, at(7), 4)
	must(t, errors.Join(errs[:]...))
	return p, home
}

// unlocked gets something and releases it.
func unlocked(held *sync.Held, err error) error {
	if err != nil {
		return err
	}
	return held.Unlock()
}

// Programs behind a daemon wait for locks at their home, and for others. A takeover of
// the daemon ends what waits at the home, and the programs wait there again by
// themselves, in their places: nobody else is told of it.
func TestWaitsGoOnAfterTakeover(t *testing.T) {
	w := newWorld(t, setting{seed: 17, server: xdpfab.DomainAttr{GiveUp: lively}})
	must(t, w.client.CloseAll()) // the daemon needs the interface
	mem, err := mr.Alloc(8*waitingAt, mr.AllocOptions{})
	must(t, err)
	region, err := w.server.Register(mem, mr.Options{Name: "waits", Access: mr.RemoteRead | mr.RemoteWrite})
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(region.Close(), mem.Close())) })
	host := newDaemon(t, w.wire.A, setting{daemonArgs: []string{"--give-up", lively.String(), "--guest", "allow"}})
	host.start(t)
	ctx := limited(t)
	holder, home := newWaitingParts(t, w, host, 0)
	words, err := xdpfab.Vector[uint64](ctx, home, "waits")
	must(t, err)
	for i := range uint64(withLocks) { // memory in use: nobody waits for a lease
		at := waitingAt / 8 * i
		must(t, words.Store(ctx, []uint64{at + 2, at + 3}, []uint64{4, 5 << 16}))
	}
	mutex, err := holder.mutex.Lock(ctx)
	must(t, err)
	lock, err := holder.lock.Lock(ctx)
	must(t, err)
	permit, err := holder.semaphore.Acquire(ctx)
	must(t, err)
	lead, err := holder.election.Campaign(ctx, 1)
	must(t, err)
	done, begun, release := make(chan error, 16), make(chan struct{}), make(chan struct{})
	all := 0
	run := func(f func() error) {
		all++
		go func() { done <- f() }()
	}
	run(func() error {
		_, err := holder.once.Do(ctx, func(context.Context, uint64) (uint64, error) {
			close(begun)
			<-release
			return 42, nil
		})
		return err
	})
	<-begun
	a, _ := newWaitingParts(t, w, host, 1)
	b, _ := newWaitingParts(t, w, host, 2)
	run(func() error { return unlocked(a.mutex.Lock(ctx)) })
	run(func() error { return unlocked(a.lock.Lock(ctx)) })
	run(func() error { return unlocked(a.semaphore.Acquire(ctx)) }) // looks for a permit
	run(func() error { return unlocked(b.semaphore.Acquire(ctx)) }) // waits for its turn
	run(func() error { return unlocked(b.election.Campaign(ctx, 2)) })
	run(func() error {
		v, err := b.once.Do(ctx, func(context.Context, uint64) (uint64, error) { return 0, errors.New("it runs twice") })
		if err == nil && v != 42 {
			err = errors.New("another result")
		}
		return err
	})
	run(func() error { _, err := a.barrier.Await(ctx); return err })
	run(func() error { return a.countdown.Wait(ctx) })
	run(func() error { _, err := a.queue.Take(ctx); return err })
	wait := func() {
		t.Helper()
		testnet.Eventually(t, "programs wait at the home", func() bool {
			q, is := region.Queues().(*waiting.Queues)
			return is && q.Len() == withLocks
		})
	}
	wait()
	for range 2 {
		for end := time.Now().Add(patience); !host.takeOver(t); {
			if time.Now().After(end) {
				t.Fatal("no takeover succeeds")
			}
		}
		wait()
	}
	select {
	case err := <-done:
		t.Fatalf("a program waits no more: %v", err)
	default:
	}
	close(release)
	must(t, errors.Join(mutex.Unlock(), lock.Unlock(), permit.Unlock(), lead.Unlock()))
	_, err = holder.barrier.Await(ctx)
	must(t, errors.Join(err, holder.countdown.Done(ctx, 0), holder.queue.Put(ctx, 7)))
	for range all {
		must(t, <-done)
	}
}
