// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

const long = 1000 * time.Hour // no period ends while a test runs

// kept is every fault but a loss of the memory.
var kept = faults{crashes: true, keeps: true, between: 30 * time.Millisecond, howOften: 12}

// tally is what programs know of their additions.
type tally struct{ done, unknown atomic.Uint64 }

// add counts an addition of n by its error.
func (c *tally) add(n uint64, err error) {
	switch {
	case err == nil:
		c.done.Add(n)
	case errors.Is(err, xdpfab.ErrOutcomeUnknown) || errors.Is(err, xdpfab.ErrPeerRestarted) &&
		!errors.Is(err, xdpfab.ErrNotExecuted):
		c.unknown.Add(n)
	}
}

// check fails the test if a sum is not what was added, give or take what is unknown.
func (c *tally) check(t *testing.T, sum uint64) {
	t.Helper()
	done, unknown := c.done.Load(), c.unknown.Load()
	if sum < done || sum > done+unknown {
		t.Errorf("the sum is %d, after additions of %d and perhaps %d", sum, done, unknown)
	}
	t.Logf("sum %d, added %d, unknown %d", sum, done, unknown)
}

// Every addition is in the sum once, in any of the shards.
func TestCounter(t *testing.T) {
	eachSeed(t, 4, func(w *world) {
		var c tally
		shards := func(ctx context.Context, at Place) (*Counter, error) {
			other := at
			other.Offset = CounterBytes
			return NewCounter(ctx, at, other)
		}
		w.busy(4, kept, func(ctx context.Context, _ int, at Place, rng *rand.Rand) error {
			counter, err := shards(ctx, at)
			for i := 0; err == nil && i < 20; i++ {
				n := rng.Uint64N(1000)
				err = counter.Add(ctx, n)
				c.add(n, err)
			}
			return err
		})
		counter := must(shards(patient(w.t), w.at(1, 0)))(w.t)
		c.check(w.t, must(counter.Sum(patient(w.t)))(w.t))
	})
}

// Shards are on several nodes. If one is away additions go to the other; if one loses its
// memory, Sum says so once.
func TestCounterShards(t *testing.T) {
	net := must(xdpfab.NewNetwork(3, xdpfab.DomainAttr{GiveUp: 200 * time.Millisecond}))(t)
	defer net.Close()
	const each = 8 // additions
	ctx := patient(t)
	var at []Place
	for node := 1; node <= 2; node++ {
		s := must(net.Node(node).Serve("parts", regionBytes))(t)
		at = append(at, Place{Home: must(net.Node(0).Dial(ctx, s.Name()))(t), Region: "parts"})
	}
	c := must(NewCounter(ctx, at...))(t)
	sum := func(least, most uint64) {
		t.Helper()
		if n := must(c.Sum(ctx))(t); n < least || n > most {
			t.Errorf("sum %d, want %d to %d", n, least, most)
		}
	}
	add := func() (unknown uint64) {
		t.Helper()
		for range each {
			call, cancel := context.WithTimeout(ctx, time.Second)
			err := c.Add(call, 1)
			cancel()
			if errors.Is(err, xdpfab.ErrOutcomeUnknown) {
				unknown++
			} else if err != nil {
				t.Error(err)
			}
		}
		return unknown
	}
	if add() > 0 {
		t.Error("an unknown outcome in a network that works")
	}
	sum(each, each)
	if err := net.Partition(2); err != nil {
		t.Fatal(err)
	}
	unknown := add()
	call, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := c.Sum(call); err == nil {
		t.Error("the sum is known while a shard is away")
	}
	net.Heal()
	sum(2*each-unknown, 2*each)
	d := must(net.Restart(2))(t)
	must(d.Serve("parts", regionBytes))(t)
	for _, lost := range []bool{true, false} {
		if _, err := c.Sum(ctx); errors.Is(err, ErrMemoryLost) != lost {
			t.Errorf("%v, lost %t", err, lost)
		}
	}
}

// A loss is told, also if another shard is silent when it is found.
func TestCounterLostBesideSilence(t *testing.T) {
	net := must(xdpfab.NewNetwork(3, xdpfab.DomainAttr{GiveUp: 200 * time.Millisecond}))(t)
	defer net.Close()
	ctx := patient(t)
	var at []Place
	for node := 1; node <= 2; node++ {
		s := must(net.Node(node).Serve("parts", regionBytes))(t)
		at = append(at, Place{Home: must(net.Node(0).Dial(ctx, s.Name()))(t), Region: "parts"})
	}
	c := must(NewCounter(ctx, at...))(t)
	d := must(net.Restart(1))(t)
	must(d.Serve("parts", regionBytes))(t)
	if err := net.Partition(2); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the loss is told beside the silence", func() bool { // unless the first shard is slow, too
		_, err := c.Sum(ctx)
		return errors.Is(err, ErrMemoryLost) && errors.Is(err, xdpfab.ErrPeerSilent)
	})
	net.Heal()
	testnet.Eventually(t, "the sum is there, and the loss told", func() bool {
		_, err := c.Sum(ctx)
		if errors.Is(err, ErrMemoryLost) {
			t.Errorf("told twice: %v", err)
		}
		return err == nil
	})
}

// A histogram whose home has lost its memory says so once, whoever found the new memory.
func TestHistogramLost(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	h := must(NewHistogram(ctx, w.at(1, 0), 10))(t)
	if err := h.Record(ctx, 1, 11); err != nil {
		t.Fatal(err)
	}
	if counts, err := h.Counts(ctx); err != nil || !slices.Equal(counts, []uint64{1, 1}) {
		t.Errorf("%v, %v", counts, err)
	}
	w.restart(false)
	testnet.Eventually(t, "a value in the new memory", func() bool { return h.Record(ctx, 5) == nil })
	for _, lost := range []bool{true, false} {
		counts, err := h.Counts(ctx)
		if errors.Is(err, ErrMemoryLost) != lost || !lost && err != nil || !slices.Equal(counts, []uint64{1, 0}) {
			t.Errorf("%v, %v, lost %t", counts, err, lost)
		}
	}
}

// Players who have posted nothing are no players.
func TestBoardLeavesOut(t *testing.T) {
	w := newWorld(t, 1, 1)
	b := must(NewBoard(patient(t), w.at(1, 0), 10))(t)
	for _, s := range []Score{{3, 7}, {9, 8}, {4, 0}} {
		if err := b.Post(patient(t), s.Player, s.Score); err != nil {
			t.Fatal(err)
		}
	}
	if top := must(b.Top(patient(t), 5))(t); !slices.Equal(top, []Score{{9, 8}, {3, 7}}) {
		t.Errorf("%v", top)
	}
}

// Every value is counted once, in its range.
func TestHistogram(t *testing.T) {
	eachSeed(t, 3, func(w *world) {
		var in [4]tally
		bounds := []uint64{10, 20, 30}
		w.busy(3, kept, func(ctx context.Context, _ int, at Place, rng *rand.Rand) error {
			h, err := NewHistogram(ctx, at, bounds...)
			for i := 0; err == nil && i < 10; i++ {
				values := make([]uint64, rng.IntN(30))
				for i := range values {
					values[i] = rng.Uint64N(41)
				}
				err = h.Record(ctx, values...)
				for _, v := range values {
					in[(max(v, 1)-1)/10].add(1, err)
				}
			}
			return err
		})
		h := must(NewHistogram(patient(w.t), w.at(1, 0), bounds...))(w.t)
		for i, n := range must(h.Counts(patient(w.t)))(w.t) {
			in[i].check(w.t, n)
		}
	})
}

// Bounds belong to the range below them.
func TestHistogramBounds(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	h := must(NewHistogram(ctx, w.at(1, 0), 0, 5, 9))(t)
	if err := errors.Join(h.Record(ctx, 0, 1, 5, 6, 9, 10, 1<<63), h.Record(ctx)); err != nil {
		t.Fatal(err)
	}
	if got, want := must(h.Counts(ctx))(t), []uint64{1, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	for _, bounds := range [][]uint64{nil, {1, 1}, {2, 1}} {
		if _, err := NewHistogram(ctx, w.at(1, 0), bounds...); !errors.Is(err, ErrParameter) {
			t.Errorf("bounds %d: %v", bounds, err)
		}
	}
	if _, err := NewHistogram(ctx, w.at(1, 0), 0, 5, 8); !errors.Is(err, ErrLayout) {
		t.Errorf("other bounds: %v", err)
	}
}

// No more than the quota is admitted in a period, and no less if enough ask, under all
// faults but a loss of the memory.
func TestLimiter(t *testing.T) {
	eachSeed(t, 3, func(w *world) {
		const quota = 60
		var admitted tally
		w.busy(3, kept, func(ctx context.Context, _ int, at Place, rng *rand.Rand) error {
			l, err := NewLimiter(ctx, at, 8, quota, long)
			for i := 0; err == nil && i < 40; i++ {
				n, ok := 1+rng.Uint64N(3), false
				if ok, err = l.Allow(ctx, "a", n); ok || err != nil {
					admitted.add(n, err)
				}
			}
			return err
		})
		l := must(NewLimiter(patient(w.t), w.at(1, 0), 8, quota, long))(w.t)
		for admitted.done.Load() <= quota && must(l.Allow(patient(w.t), "a", 1))(w.t) {
			admitted.add(1, nil)
		}
		// What is unknown may be counted, and was not admitted.
		done, unknown := admitted.done.Load(), admitted.unknown.Load()
		if done > quota || done+unknown < quota {
			w.t.Errorf("admitted %d, and counted %d more at most: want %d", done, unknown, quota)
		}
	})
}

// Requests that were counted at a home that died before its answer arrived may be
// counted: the caller is told so, and they are not counted once more.
func TestLimiterUnknown(t *testing.T) {
	w := newWorld(t, 2, 1)
	var l [3]*Limiter
	for i := 1; i < len(l); i++ {
		l[i] = must(NewLimiter(patient(t), w.at(i, 0), 1, 9, 1<<62))(t) // nobody sees the end of its first period
	}
	counted := func() (n uint64) {
		if err := l[2].look(patient(t), func(m *memory) (err error) {
			n, err = m.at(bodyWord).Load(patient(t))
			return err
		}); err != nil {
			t.Error(err)
		}
		return n
	}
	if err := w.net.SetFaults(home, 1, xdpfab.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := l[1].Allow(patient(t), "a", 2)
		ended <- err
	}()
	testnet.Eventually(t, "the home counts", func() bool { return counted() == 2 })
	w.restart(true)
	if err := w.net.SetFaults(home, 1, xdpfab.Faults{}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		t.Errorf("%v: want an unknown outcome", err)
	}
	if n := counted(); n != 2 {
		t.Errorf("%d are counted, want 2", n)
	}
}

// Each period has its quota, also where the clock of the one that asks is behind, and
// each customer.
func TestLimiterPeriods(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	l := must(NewLimiter(ctx, w.at(1, 0), 400, 5, long))(t)
	admitted := func(customer string, want int) {
		t.Helper()
		n := 0
		for range 10 {
			if must(l.Allow(ctx, customer, 1))(t) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d admitted, want %d", customer, n, want)
		}
	}
	admitted("a", 5)
	admitted("b", 5)
	ok, err := l.Allow(ctx, "c", 6)
	if want := "6 requests at once, and the quota is 5: want at most the quota, ask for them in parts"; ok ||
		!errors.Is(err, ErrParameter) || !errors.Is(err, xdpfab.ErrNotExecuted) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("more than a quota: %v, %v; want %q", ok, err, want)
	}
	word := must(l.memory(ctx))(t).at(bodyWord + l.index("a"))
	for i, by := range []uint64{-(1 << countedBits) & (1<<64 - 1), 1 << countedBits} { // a period back; one ahead
		if now := must(word.Load(ctx))(t); i == 1 {
			must(word.Swap(ctx, now+by-5))(t)
		} else {
			must(word.Swap(ctx, now+by))(t)
		}
		admitted("a", 5)
		admitted("a", 0)
	}
	w.restart(false)
	admitted("a", 5)
}

// A place that is named twice would count twice, also by another peer of the same node.
func TestCounterPlacesOnce(t *testing.T) {
	w := newWorld(t, 2, 1)
	ctx := patient(t)
	if _, err := NewCounter(ctx, w.at(1, 0), w.at(1, 64)); err != nil {
		t.Error(err)
	}
	const want = "xdpfab: NewCounter: shard 2 is at the place of shard 0, and would count twice: want each place once"
	for _, again := range []Place{w.at(1, 0), w.at(2, 0)} {
		_, err := NewCounter(ctx, w.at(1, 0), w.at(1, 64), again)
		if !errors.Is(err, ErrParameter) || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	// A refusal leaves no mark in the memory.
	fresh, wrong := w.at(1, 512), w.at(1, 100)
	for _, places := range [][]Place{{fresh, fresh}, {fresh, wrong}, {fresh, {Region: "parts"}}} {
		if _, err := NewCounter(ctx, places...); !errors.Is(err, ErrParameter) {
			t.Errorf("%v: %v, want ErrParameter", places, err)
		}
	}
	must(NewQueue(ctx, fresh, 1))(t)
}

// The best players are those who posted most, whatever was repeated or lost.
func TestBoard(t *testing.T) {
	eachSeed(t, 3, func(w *world) {
		var best [6]atomic.Uint64
		boards := make([]*Board, 3)
		w.busy(3, faults{keeps: true, forgets: true, between: 30 * time.Millisecond, howOften: 12},
			func(ctx context.Context, client int, at Place, rng *rand.Rand) (err error) {
				b := boards[client]
				if b == nil {
					if b, err = NewBoard(ctx, at, len(best)); err != nil {
						return err
					}
					boards[client] = b
				}
				for i := 0; err == nil && i < 10; i++ {
					player, score := rng.Uint64N(uint64(len(best))), rng.Uint64N(1e6)
					for was := best[player].Load(); was < score && !best[player].CompareAndSwap(was, score); {
						was = best[player].Load()
					}
					err = b.Post(ctx, player, score)
				}
				return err
			})
		for _, b := range boards { // each posts its own again
			must(b.Top(patient(w.t), 1))(w.t)
		}
		want := make([]Score, len(best))
		for p := range want {
			want[p] = Score{uint64(p), best[p].Load()}
		}
		slices.SortStableFunc(want, func(a, b Score) int { return int(b.Score) - int(a.Score) })
		if got := must(boards[0].Top(patient(w.t), 4))(w.t); !slices.Equal(got, want[:4]) {
			w.t.Errorf("%v, want %v", got, want[:4])
		}
	})
}
