// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// crowd is many goroutines at one stepper. hurt is a variable that only the thread that
// has the turn touches: the race detector tells if another one does.
type crowd struct {
	t    *testing.T
	eng  *fakeEngine
	s    *Stepper
	hurt int
	held atomic.Int64 // how often a poster had the turn
	done atomic.Int64 // waits that have ended
}

// waiter waits for n operations. One that is late shows as a test that does not end.
func (c *crowd) waiter(n int) {
	for i := range n {
		sig := NewSignal()
		ctx, cancel := context.WithCancel(context.Background())
		if i%7 == 0 {
			time.AfterFunc(time.Duration(rand.IntN(50))*time.Microsecond, cancel)
		}
		c.eng.post(time.Duration(rand.IntN(20))*time.Microsecond, func() { c.hurt++; sig.Raise() })
		c.eng.Notify()
		err := c.s.Wait(ctx, &sig)
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errClosed) {
			c.t.Error(err)
		}
		cancel()
		c.done.Add(1)
	}
}

// until lets the others run until something holds.
func until(cond func() bool) {
	for !cond() {
		time.Sleep(10 * time.Microsecond)
	}
}

// poster posts directly when it can, and otherwise through a call.
func (c *crowd) poster(n int) {
	for i := range n {
		switch {
		case c.s.TryHold():
			c.eng.enter()
			c.hurt++
			c.held.Add(1)
			c.eng.leave()
			c.s.Release()
			c.s.Notify()
		case i%16 == 0:
			c.s.Call(func() { c.hurt++ })
		default:
			c.s.Defer()
			c.s.Progress()
			runtime.Gosched()
		}
	}
}

func crowdTest(t *testing.T, f func(c *crowd)) {
	for name, manual := range map[string]bool{"automatic": false, "manual": true} {
		t.Run(name, func(t *testing.T) {
			c := &crowd{t: t, eng: newFake(t, false)}
			c.s = start(c.eng, manual)
			done := make(chan struct{})
			go func() { f(c); close(done) }()
			select {
			case <-done:
			case <-time.After(testnet.Patience):
				buf := make([]byte, 1<<16)
				t.Fatalf("a goroutine still waits after %v\n%s", testnet.Patience, buf[:runtime.Stack(buf, true)])
			}
			if c.s.TryHold() {
				t.Error("the turn can be had after Close")
			}
			t.Logf("posters had the turn %d times, %d steps", c.held.Load(), c.eng.steps.Load())
		})
	}
}

// All goroutines finish, however many wait and post, and one thread at a time is in
// the engine.
func TestCrowd(t *testing.T) {
	crowdTest(t, func(c *crowd) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { c.waiter(300) })
			all.Go(func() { c.poster(3000) })
		}
		all.Wait()
		c.s.Close(time.Second)
		c.eng.over.Store(true)
		if !c.s.manual || c.held.Load() > 0 {
			return
		}
		c.t.Error("no poster ever had the turn")
	})
}

// Close is called meanwhile: all goroutines are released, and no thread is in the engine
// afterwards.
func TestCrowdIsClosed(t *testing.T) {
	crowdTest(t, func(c *crowd) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { c.waiter(100) })
			all.Go(func() { c.poster(1000) })
		}
		sig := NewSignal() // nobody raises it
		all.Go(func() {
			if err := c.s.Wait(context.Background(), &sig); !errors.Is(err, errClosed) {
				c.t.Errorf("%v, want the error of Close", err)
			}
		})
		until(func() bool { return c.done.Load() > 50 }) // of 800
		c.s.Close(time.Second)
		c.eng.over.Store(true)
		all.Wait()
	})
}

// WaitFor ends with its channel or its context, whichever thread steps.
func TestWaitFor(t *testing.T) {
	crowdTest(t, func(c *crowd) {
		ctx, cancel := context.WithCancel(context.Background())
		var (
			all   sync.WaitGroup
			dones []chan struct{}
		)
		for range 4 {
			done := make(chan struct{})
			all.Go(func() {
				if err := c.s.WaitFor(context.Background(), done); err != nil {
					c.t.Error(err)
				}
			})
			all.Go(func() {
				if err := c.s.WaitFor(ctx, nil); !errors.Is(err, context.Canceled) {
					c.t.Errorf("%v, want the context's error", err)
				}
			})
			dones = append(dones, done)
		}
		until(func() bool { return c.s.waiting.Load() == 8 })
		for _, done := range dones {
			close(done)
		}
		until(func() bool { return c.s.waiting.Load() == 4 })
		cancel()
		all.Wait()
		c.s.Close(time.Second)
	})
}

// A deferred post is started by a goroutine that begins to wait while another one has the
// turn and is asleep in the port.
func TestWaitStartsWhatIsDeferred(t *testing.T) {
	crowdTest(t, func(c *crowd) {
		ctx, cancel := context.WithCancel(context.Background())
		first := NewSignal()
		var all sync.WaitGroup
		all.Go(func() { _ = c.s.Wait(ctx, &first) })
		for !c.eng.asleep.Load() || c.s.waiting.Load() == 0 {
			runtime.Gosched()
		}
		sig := NewSignal()
		c.eng.post(0, sig.Raise)
		c.s.Defer()
		if err := c.s.Wait(ctx, &sig); err != nil {
			c.t.Error(err)
		}
		cancel()
		all.Wait()
		c.s.Close(time.Second)
	})
}

func BenchmarkTryHold(b *testing.B) {
	b.Run("free", func(b *testing.B) {
		s := start(newFake(b, false), true)
		for b.Loop() {
			if s.TryHold() {
				s.Release()
			}
		}
	})
	b.Run("alone", func(b *testing.B) {
		s := startAlone(newFake(b, false))
		for b.Loop() {
			if s.TryHold() {
				s.Release()
			}
		}
	})
	b.Run("held", func(b *testing.B) {
		s := start(newFake(b, false), true)
		s.TryHold()
		for b.Loop() {
			if s.TryHold() {
				b.Fatal("held twice")
			}
		}
	})
}
