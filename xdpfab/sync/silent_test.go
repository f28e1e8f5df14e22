// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// everyCall returns a call of each method of each part that sends something.
func everyCall(t *testing.T, peer *xdpfab.Peer) map[string]func(context.Context) error {
	const lease = time.Minute
	ctx, offset := patient(t), uint64(0)
	at := func(bytes int) Place {
		p := Place{Home: peer, Region: "parts", Offset: offset}
		offset += uint64(bytes)
		return p
	}
	mutex := must(NewMutex(ctx, at(MutexBytes), lease))(t)
	rw := must(NewRWMutex(ctx, at(SemaphoreBytes(2)), 2, lease))(t)
	semaphore := must(NewSemaphore(ctx, at(SemaphoreBytes(2)), 2, lease))(t)
	once := must(NewOnce(ctx, at(OnceBytes), lease))(t)
	election := must(NewElection(ctx, at(ElectionBytes), lease))(t)
	sequencer := must(NewSequencer(ctx, at(SequencerBytes), 1))(t)
	queue := must(NewQueue(ctx, at(QueueBytes(2)), 2))(t)
	barrier := must(NewBarrier(ctx, at(BarrierBytes(2)), 2, 0))(t)
	countdown := must(NewCountdown(ctx, at(CountdownBytes(2)), 2))(t)
	limiter := must(NewLimiter(ctx, at(LimiterBytes(2)), 2, 5, time.Hour))(t)
	counter := must(NewCounter(ctx, at(CounterBytes)))(t)
	histogram := must(NewHistogram(ctx, at(HistogramBytes(2)), 1, 2))(t)
	scores := at(BoardBytes(2))
	board, top := must(NewBoard(ctx, scores, 2))(t), must(NewBoard(ctx, scores, 2))(t) // each for one goroutine
	late := at(MutexBytes)
	return map[string]func(context.Context) error{
		"NewMutex":          func(ctx context.Context) error { return second(NewMutex(ctx, late, lease)) },
		"Mutex.Lock":        func(ctx context.Context) error { return second(mutex.Lock(ctx)) },
		"RWMutex.Lock":      func(ctx context.Context) error { return second(rw.Lock(ctx)) },
		"RWMutex.RLock":     func(ctx context.Context) error { return second(rw.RLock(ctx)) },
		"Semaphore.Acquire": func(ctx context.Context) error { return second(semaphore.Acquire(ctx)) },
		"Once.Do": func(ctx context.Context) error {
			return second(once.Do(ctx, func(context.Context, uint64) (uint64, error) { return 1, nil }))
		},
		"Election.Campaign": func(ctx context.Context) error { return second(election.Campaign(ctx, 1)) },
		"Election.Leader": func(ctx context.Context) error {
			_, _, _, err := election.Leader(ctx)
			return err
		},
		"Sequencer.Take": func(ctx context.Context) error { return second(sequencer.Take(ctx, 1)) },
		"Sequencer.Next": func(ctx context.Context) error { return second(sequencer.Next(ctx)) },
		"Queue.Put":      func(ctx context.Context) error { return queue.Put(ctx, 1) },
		"Queue.Take":     func(ctx context.Context) error { return second(queue.Take(ctx)) },
		"Queue.TryPut":   func(ctx context.Context) error { return second(queue.TryPut(ctx, 1)) },
		"Queue.TryTake": func(ctx context.Context) error {
			_, _, err := queue.TryTake(ctx)
			return err
		},
		"Barrier.Await":    func(ctx context.Context) error { return second(barrier.Await(ctx)) },
		"Countdown.Done":   func(ctx context.Context) error { return countdown.Done(ctx, 0) },
		"Countdown.Left":   func(ctx context.Context) error { return second(countdown.Left(ctx)) },
		"Countdown.Wait":   func(ctx context.Context) error { return countdown.Wait(ctx) },
		"Limiter.Allow":    func(ctx context.Context) error { return second(limiter.Allow(ctx, "c", 1)) },
		"Counter.Add":      func(ctx context.Context) error { return counter.Add(ctx, 1) },
		"Counter.Sum":      func(ctx context.Context) error { return second(counter.Sum(ctx)) },
		"Histogram.Record": func(ctx context.Context) error { return histogram.Record(ctx, 1) },
		"Histogram.Counts": func(ctx context.Context) error { return second(histogram.Counts(ctx)) },
		"Board.Post":       func(ctx context.Context) error { return board.Post(ctx, 0, 1) },
		"Board.Top":        func(ctx context.Context) error { return second(top.Top(ctx, 1)) },
	}
}

func second[T any](_ T, err error) error { return err }

// checkText looks for what no text of an error may have.
func checkText(t *testing.T, call string, err error) {
	t.Helper()
	text, certainties := err.Error(), 0
	for _, c := range []error{xdpfab.ErrNotExecuted, xdpfab.ErrOutcomeUnknown} {
		certainties += strings.Count(text, c.Error())
	}
	if strings.Contains(text, "%!") || certainties > 1 || strings.LastIndex(text, "xdpfab: ") != 0 {
		t.Errorf("%s: %q; want one certainty, the prefix once and first, and no mistake of a format", call, text)
	}
}

// Each part tells why its home cannot be reached: it is silent, or the domain is closed.
func TestHomeAway(t *testing.T) {
	testnet.SkipOnNICs(t, "a network in memory")
	for _, c := range []struct {
		name  string
		leave func(*xdpfab.Network) error
		want  error
	}{
		{"silent", func(n *xdpfab.Network) error { return n.Partition(home) }, xdpfab.ErrPeerSilent},
		{"closed", func(n *xdpfab.Network) error { return n.Node(1).CloseAll() }, xdpfab.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			attr := xdpfab.DomainAttr{GiveUp: testnet.Patience}
			near := xdpfab.DomainAttr{GiveUp: 5 * time.Second} // longer than a busy machine stops the home for
			w := &world{t: t, net: must(xdpfab.NewNetwork(2, attr, near))(t)}
			defer w.net.Close()
			w.mem = must(mr.Alloc(regionBytes, mr.AllocOptions{}))(t)
			w.serve(w.net.Node(home))
			calls := everyCall(t, must(w.net.Node(1).Dial(patient(t), w.net.Node(home).Name(0)))(t))
			if err := c.leave(w.net); err != nil {
				t.Fatal(err)
			}
			check := func(name string) {
				err := calls[name](patient(t))
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %v; want %v", name, err, c.want)
				}
				if err != nil {
					checkText(t, name, err)
				}
				if at := name + " at offset "; c.want != xdpfab.ErrClosed && !strings.HasPrefix(err.Error(), "xdpfab: "+at) {
					t.Errorf("%v; want the call and its place", err)
				}
			}
			check("Queue.TryTake") // a look that was sent
			var all sync.WaitGroup
			for name := range calls {
				all.Go(func() { check(name) })
			}
			all.Wait()
		})
	}
}

// Words before an error come behind its prefix. Another certainty replaces the former.
func TestTexts(t *testing.T) {
	op := &xdpfab.OpError{Op: "fetch read uint64", Peer: "p", Certainty: xdpfab.ErrPeerRestarted, Cause: xdpfab.ErrSessionLost}
	err := tell(certain(t.Context(), op, xdpfab.ErrOutcomeUnknown), "%w", ErrMemoryLost)
	checkText(t, "tell", err)
	for _, is := range []error{ErrMemoryLost, xdpfab.ErrOutcomeUnknown, xdpfab.ErrPeerRestarted, xdpfab.ErrSessionLost} {
		if !errors.Is(err, is) {
			t.Errorf("%v is not %v", err, is)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := certain(ended, op, xdpfab.ErrNotExecuted); !errors.Is(err, context.Canceled) ||
		!errors.Is(err, xdpfab.ErrNotExecuted) || errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		t.Error(err)
	}
}

// A wait that ends with its context says what was waited for, and what the caller can do.
// Nothing of a lock is unknown then.
func TestWaitEnds(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	const lease = time.Hour
	calls := everyCall(t, w.at(1, 0).Home.(*xdpfab.Peer))
	full := must(NewQueue(ctx, w.at(1, 2560), 1))(t)
	if err := full.Put(ctx, 1); err != nil {
		t.Fatal(err)
	}
	words := must(xdpfab.Vector[uint64](ctx, w.at(1, 0).Home, "parts"))(t)
	taken := func(at, tickets uint64) { // by a program that is gone: it is the turn of ticket 5
		at /= 8
		if err := words.Store(ctx, []uint64{at + ticketWord, at + turnWord}, []uint64{tickets, 5 << beatBits}); err != nil {
			t.Error(err)
		}
	}
	mutex, free := must(NewMutex(ctx, w.at(1, 2688), lease))(t), must(NewSemaphore(ctx, w.at(1, 2944), 1, lease))(t)
	readers := must(NewRWMutex(ctx, w.at(1, 3264), 1, lease))(t)
	if got := mutex.behind(5, 5); got != unanswered {
		t.Errorf("at its turn: %q, want %q", got, unanswered)
	}
	taken(2944, 4)
	taken(3264, 4)
	must(free.Acquire(ctx))(t)
	must(readers.RLock(ctx))(t)
	const patience = "give the context more time, or have the holder release it; a dead one has it for its lease of 1h0m0s"
	for _, c := range []struct {
		name, want string
		call       func(context.Context) error
	}{
		{"Queue.Take", "the queue was empty: have a program put a value, or give the context more time", calls["Queue.Take"]},
		{"Queue.Put", "the queue was full, at its room of 1: have a program take some, or give the context more time",
			func(ctx context.Context) error { return full.Put(ctx, 2) }},
		{"Mutex.Lock", "the memory is new, and nobody gets its turn before a lease of 1h0m0s is over: give the context more time",
			func(ctx context.Context) error { return second(mutex.Lock(ctx)) }},
		{"Mutex.Lock", "another program had the lock: " + patience,
			func(ctx context.Context) error { taken(2688, 5); return second(mutex.Lock(ctx)) }},
		{"Mutex.Lock", "3 programs were ahead: " + patience,
			func(ctx context.Context) error { taken(2688, 7); return second(mutex.Lock(ctx)) }},
		{"Semaphore.Acquire", "no permit of 1 was free: " + patience,
			func(ctx context.Context) error { return second(free.Acquire(ctx)) }},
		{"RWMutex.Lock", "readers had the lock: " + patience,
			func(ctx context.Context) error { return second(readers.Lock(ctx)) }},
		{"Barrier.Await", "parties [1] were missing in round 1: call Await again, or give the context more time",
			calls["Barrier.Await"]},
		{"Countdown.Wait", "2 of 2 tasks were not done: call Wait again, or give the context more time", calls["Countdown.Wait"]},
	} {
		var err error
		said := false
		for d := 50 * time.Millisecond; !said && d < 10*time.Second; d *= 2 { // the home may be slow to answer
			ctx, cancel := context.WithTimeout(t.Context(), d)
			err = c.call(ctx)
			cancel()
			said = err != nil && strings.HasPrefix(err.Error(), "xdpfab: "+c.name+" at offset ") &&
				strings.HasSuffix(err.Error(), ": "+c.want+": context deadline exceeded")
		}
		if !said || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
			continue
		}
		checkText(t, c.name, err)
		if c.name != "Barrier.Await" && errors.Is(err, xdpfab.ErrOutcomeUnknown) {
			t.Errorf("%s: %v has an unknown outcome", c.name, err)
		}
	}
}

// What is beyond a part is refused with what there is.
func TestBeyond(t *testing.T) {
	w := newWorld(t, 1, 1)
	c := must(NewCountdown(patient(t), w.at(1, 0), 3))(t)
	b := must(NewBoard(patient(t), w.at(1, 64), 3))(t)
	on := on(c.place.Home)
	if best, err := b.Top(t.Context(), -1); best != nil || !errors.Is(err, ErrParameter) || !errors.Is(err, xdpfab.ErrNotExecuted) ||
		!strings.HasSuffix(err.Error(), ": the best -1 players: want 0 or more") {
		t.Error(best, err)
	}
	for want, err := range map[string]error{
		`xdpfab: Countdown.Done at offset 0 of region "parts"` + on + ": task 3 of 3: want 0 to 2": c.Done(t.Context(), 3),
		`xdpfab: Board.Post at offset 64 of region "parts"` + on + ": player 3 of 3: want 0 to 2":  b.Post(t.Context(), 3, 1),
	} {
		if !errors.Is(err, xdpfab.ErrOutOfBounds) || !errors.Is(err, xdpfab.ErrNotExecuted) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A look that failed leaves nothing unknown.
func TestLookUnknown(t *testing.T) {
	w := newWorld(t, 1, 1)
	q := must(NewQueue(patient(t), w.at(1, 0), 2))(t)
	err := q.look(t.Context(), func(*memory) error {
		return &xdpfab.OpError{Op: "fetch read uint64", Peer: "p", Certainty: xdpfab.ErrOutcomeUnknown,
			Cause: xdpfab.ErrPeerSilent}
	})
	if errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, xdpfab.ErrNotExecuted) ||
		!errors.Is(err, xdpfab.ErrPeerSilent) {
		t.Error(err)
	}
}

// A lock at a home that is silent fails once the home is given up, also if the ticket was
// asked for by then. The ticket that may have been given is left when it is known, so it
// costs nobody a lease.
func TestLockAtSilentHome(t *testing.T) {
	testnet.SkipOnNICs(t, "a network in memory")
	attr, near := xdpfab.DomainAttr{GiveUp: testnet.Patience}, xdpfab.DomainAttr{GiveUp: 5 * time.Second}
	w := &world{t: t, net: must(xdpfab.NewNetwork(3, attr, near, attr))(t)}
	defer w.net.Close()
	w.mem = must(mr.Alloc(regionBytes, mr.AllocOptions{}))(t)
	w.serve(w.net.Node(home))
	const lease = time.Hour // nobody waits for it here
	m, other := newTestMutex(w, 1, lease), newTestMutex(w, 2, lease)
	words := must(xdpfab.Vector[uint64](patient(t), w.at(2, 0).Home, "parts"))(t)
	if err := words.Store(patient(t), []uint64{ticketWord, turnWord}, []uint64{4, 5 << beatBits}); err != nil {
		t.Fatal(err)
	}
	// The answers are lost, so the ticket is given.
	if err := w.net.SetFaults(home, 1, xdpfab.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := m.Lock(patient(t))
	if !errors.Is(err, xdpfab.ErrPeerSilent) || !errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("after %v: %v, want ErrPeerSilent and ErrNotExecuted", time.Since(began), err)
	}
	checkText(t, "Mutex.Lock", err)
	if ticket := must(words.At(ticketWord).Load(patient(t)))(t); ticket != 5 {
		t.Fatalf("ticket %d was given last, want 5", ticket)
	}
	if err := w.net.SetFaults(home, 1, xdpfab.Faults{}); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the ticket is left", func() bool {
		return must(words.At(leftWord+5%leftWords).Load(patient(t)))(t) == 5
	})
	held := must(other.Lock(patient(t)))(t)
	if ticket := held.Token() - other.epoch; ticket != 6 {
		t.Errorf("ticket %d got the lock, want 6", ticket)
	}
	if err := held.Unlock(); err != nil {
		t.Error(err)
	}
}
