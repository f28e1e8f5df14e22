// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// No party passes a round before all have come, and none is left behind, whatever is lost
// on the way but a party.
func TestBarrier(t *testing.T) {
	const parties, rounds = 3, 8
	eachSeed(t, parties, func(w *world) {
		var reached [parties]atomic.Uint64
		var all sync.WaitGroup
		for i := range parties {
			ctx := patient(w.t)
			b := must(NewBarrier(ctx, w.at(1+i, 0), parties, i))(w.t)
			all.Go(func() {
				for round := uint64(1); round <= rounds; {
					time.Sleep(rand.N(20 * time.Millisecond))
					reached[i].Store(round)
					got, err := b.Await(ctx)
					if err != nil && ctx.Err() != nil {
						w.t.Error(err)
						return
					}
					if err != nil { // the home was away: the same round again
						continue
					}
					for j := range parties {
						if there := reached[j].Load(); got != round || there < round {
							w.t.Errorf("party %d passes round %d, as %d, and party %d is in %d", i, round, got, j, there)
						}
					}
					round++
				}
			})
		}
		// In the last round nobody writes anew what is lost behind those who passed it.
		w.disturb(faults{keeps: true, clients: parties, between: 20 * time.Millisecond, howOften: 10})
		all.Wait()
	})
}

// Those that wait write their words into new memory. A party that begins anew continues;
// a context that ends tells who is missing.
func TestBarrierOutcome(t *testing.T) {
	w := newWorld(t, 1, 1)
	b := must(NewBarrier(patient(t), w.at(1, 0), 2, 0))(t)
	for range 50 { // the call that fails may be any, and none of them belies the word
		ctx, cancel := context.WithTimeout(patient(t), time.Millisecond)
		_, err := b.Await(ctx)
		cancel()
		arrived := must(must(b.memory(patient(t)))(t).at(bodyWord).Load(patient(t)))(t)
		if err == nil || errors.Is(err, xdpfab.ErrNotExecuted) && arrived > 0 {
			t.Errorf("%v, and the word of the party is %d", err, arrived)
		}
	}
}

func TestBarrierParties(t *testing.T) {
	w := newWorld(t, 2, 1)
	ctx := patient(t)
	a, b := must(NewBarrier(ctx, w.at(1, 0), 2, 0))(t), must(NewBarrier(ctx, w.at(2, 0), 2, 1))(t)
	there := make(chan error)
	go func() {
		_, err := a.Await(ctx)
		there <- err
	}()
	word := must(xdpfab.Word[uint64](ctx, w.at(2, 0).Home, "parts", bodyWord))(t)
	for must(word.Load(ctx))(t) != 1 {
	}
	w.restart(false)
	if r, err := b.Await(ctx); r != 1 || err != nil {
		t.Error(r, err)
	}
	if err := <-there; err != nil {
		t.Error(err)
	}
	b = must(NewBarrier(ctx, w.at(2, 0), 2, 1))(t)
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := b.Await(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("alone in round 2: %v", err)
	}
	go func() {
		_, err := a.Await(ctx)
		there <- err
	}()
	if r, err := b.Await(ctx); r != 2 || err != nil {
		t.Error(r, err)
	}
	if err := <-there; err != nil {
		t.Error(err)
	}
	if got := late([]uint64{3, 2, 4, 0}, 3); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("missing are %d", got)
	}
	if _, err := NewBarrier(ctx, w.at(1, 0), 2, 2); !errors.Is(err, ErrParameter) {
		t.Error(err)
	}
}

// Wait returns when the last task is done, and not before, however often one is done.
func TestCountdown(t *testing.T) {
	const tasks = 70
	eachSeed(t, 3, func(w *world) {
		var begun [tasks]atomic.Bool
		var all sync.WaitGroup
		waiter := must(NewCountdown(patient(w.t), w.at(1, 0), tasks))(w.t)
		all.Go(func() {
			err := errors.New("not yet")
			for ctx := patient(w.t); err != nil && ctx.Err() == nil; {
				err = waiter.Wait(ctx)
			}
			if err != nil {
				w.t.Error(err)
			}
			for i := range begun {
				if !begun[i].Load() {
					w.t.Errorf("task %d is not done", i)
				}
			}
		})
		w.busy(3, faults{keeps: true, between: 20 * time.Millisecond, howOften: 10},
			func(ctx context.Context, client int, at Place, rng *rand.Rand) error {
				c, err := NewCountdown(ctx, at, tasks)
				end, _ := ctx.Deadline()
				last := time.Until(end) > time.Second              // nothing is disturbed any more
				for i := client; err == nil && i < tasks; i += 2 { // two clients for some
					if last || rng.IntN(8) == 0 {
						begun[i].Store(true)
						err = c.Done(ctx, i)
					}
				}
				return err
			})
		all.Wait()
	})
}

// A loss before the call of Wait is told as well: the task that was done is no longer.
func TestCountdownLostBefore(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	c := must(NewCountdown(ctx, w.at(1, 0), 2))(t)
	if err := c.Done(ctx, 0); err != nil {
		t.Fatal(err)
	}
	w.restart(false)
	testnet.Eventually(t, "the new memory is found", func() bool { return must(c.Left(ctx))(t) == 2 })
	if err := c.Wait(ctx); !errors.Is(err, ErrMemoryLost) {
		t.Errorf("%v, want ErrMemoryLost", err)
	}
	if err := errors.Join(c.Done(ctx, 0), c.Done(ctx, 1), c.Wait(ctx)); err != nil {
		t.Error(err)
	}
}

// A program that only marks tasks is told of a loss as well, once. The task is marked.
func TestCountdownDoneAfterLoss(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	c := must(NewCountdown(ctx, w.at(1, 0), 2))(t)
	if err := c.Done(ctx, 0); err != nil {
		t.Fatal(err)
	}
	w.restart(false)
	if err := c.Done(ctx, 1); !errors.Is(err, ErrMemoryLost) {
		t.Errorf("%v, want ErrMemoryLost", err)
	} else {
		checkText(t, "Countdown.Done", err)
	}
	if left := must(c.Left(ctx))(t); left != 1 {
		t.Errorf("%d tasks left, want 1: task 1 is marked", left)
	}
	if err := errors.Join(c.Done(ctx, 0), c.Wait(ctx)); err != nil {
		t.Error(err)
	}
}

// A loss of the memory is told to those who wait.
func TestCountdownLost(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	c := must(NewCountdown(ctx, w.at(1, 0), 2))(t)
	if err := errors.Join(c.Done(ctx, 0), c.Done(ctx, 0)); err != nil {
		t.Fatal(err)
	}
	if left := must(c.Left(ctx))(t); left != 1 {
		t.Errorf("%d tasks left, want 1", left)
	}
	told := make(chan error)
	go func() { told <- c.Wait(ctx) }()
	w.restart(false)
	// The wait may begin after the restart. Each of the next ones leaves it more time.
	for lost, pause := false, 10*time.Millisecond; !lost; pause *= 2 {
		select {
		case err := <-told:
			if lost = true; !errors.Is(err, ErrMemoryLost) {
				t.Errorf("%v, want ErrMemoryLost", err)
			}
		case <-time.After(pause):
			w.restart(false)
		}
	}
	again := func() error { return errors.Join(c.Done(ctx, 0), c.Done(ctx, 1), c.Wait(ctx)) }
	err := again()
	if errors.Is(err, ErrMemoryLost) { // of a restart after the loss that was told
		err = again()
	}
	if err != nil {
		t.Error(err)
	}
	if err := c.Done(ctx, 2); !errors.Is(err, xdpfab.ErrOutOfBounds) {
		t.Error(err)
	}
}

// A party that the others have seen did arrive, even if its later looks are refused.
func TestBarrierClosedMeanwhile(t *testing.T) {
	w := newWorld(t, 1, 1)
	b := must(NewBarrier(patient(t), w.at(1, 0), 2, 0))(t)
	there := must(w.reg.Uint64(bodyWord))(t)
	go func() {
		for there.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if err := w.net.Node(1).CloseAll(); err != nil {
			t.Error(err)
		}
	}()
	_, err := b.Await(patient(t))
	if !errors.Is(err, xdpfab.ErrClosed) || !errors.Is(err, xdpfab.ErrOutcomeUnknown) || errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("%v, want ErrClosed with an unknown outcome", err)
	}
	checkText(t, "Barrier.Await", err)
}
