// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

const queueRoom = 3

// queueCall is a call of TryPut or TryTake.
type queueCall struct {
	put     bool
	value   uint64 // of TryTake that it returned, also with an error
	ok      bool
	unknown bool // it ran or did not
}

// queueModel is a queue with bounded room.
var queueModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{[]uint64(nil)} },
	Step: func(state, input, _ any) (next []any) {
		q, c := state.([]uint64), input.(queueCall)
		if c.unknown {
			next = append(next, q)
		}
		switch room, has := len(q) < queueRoom, len(q) > 0; {
		case c.put && !c.ok && !c.unknown && !room, !c.put && !c.ok && !c.unknown && !has:
			next = append(next, q)
		case c.put && (c.ok || c.unknown) && room:
			next = append(next, append(slices.Clip(q), c.value))
		case !c.put && (c.ok || c.unknown) && has && q[0] == c.value:
			next = append(next, q[1:])
		}
		return next
	},
	Equal: func(a, b any) bool { return slices.Equal(a.([]uint64), b.([]uint64)) },
}

// What producers and consumers see is what a queue does in some order of their calls,
// with crashes, and restarts that keep the memory.
func TestQueue(t *testing.T) {
	eachSeed(t, 3, func(w *world) {
		var mu sync.Mutex
		var history []porcupine.Operation
		start, last := time.Now(), uint64(0)
		f := faults{crashes: true, keeps: true, between: 30 * time.Millisecond, howOften: 10}
		w.busy(3, f, func(ctx context.Context, client int, at Place, rng *rand.Rand) error {
			q, err := NewQueue(ctx, at, queueRoom)
			if err != nil {
				return err
			}
			for range 1 + rng.IntN(20) {
				time.Sleep(rand.N(time.Millisecond))
				c := queueCall{put: rng.IntN(2) == 0}
				mu.Lock()
				last++
				c.value = last
				full := len(history) >= 80
				mu.Unlock()
				if full {
					return nil
				}
				call, cancel := ctx, context.CancelFunc(func() {})
				if rng.IntN(8) == 0 { // so that outcomes are unknown
					call, cancel = context.WithTimeout(ctx, rand.N(400*time.Microsecond))
				}
				o := porcupine.Operation{ClientId: client, Call: int64(time.Since(start))}
				if c.put {
					c.ok, err = q.TryPut(call, c.value)
				} else {
					c.value, c.ok, err = q.TryTake(call)
				}
				cancel()
				o.Return = int64(time.Since(start))
				if c.unknown = errors.Is(err, xdpfab.ErrOutcomeUnknown); c.unknown {
					o.Return = math.MaxInt64
				}
				if o.Input = c; err == nil || c.unknown {
					mu.Lock()
					history = append(history, o)
					mu.Unlock()
				}
				if err != nil && ctx.Err() == nil && call.Err() == nil {
					return err
				}
			}
			return nil
		})
		w.check(queueModel.ToModel(), history)
	})
}

// check fails the test if a history is in no order.
func (w *world) check(m porcupine.Model, history []porcupine.Operation) {
	w.t.Helper()
	for i := range history { // clients die, and calls of unknown outcome never end
		history[i].ClientId = i
	}
	switch porcupine.CheckOperationsTimeout(m, history, 20*time.Second) {
	case porcupine.Illegal:
		w.t.Errorf("no order explains %d calls: %v", len(history), history)
	case porcupine.Unknown:
		w.t.Logf("it takes too long to check %d calls", len(history))
	default:
		unknown := 0
		for _, o := range history {
			if o.Return == math.MaxInt64 {
				unknown++
			}
		}
		w.t.Log(len(history), "calls,", unknown, "unknown")
	}
}

// The check can fail.
func TestQueueModel(t *testing.T) {
	put := func(v uint64, ok, unknown bool) queueCall { return queueCall{true, v, ok, unknown} }
	take := func(v uint64, ok bool) queueCall { return queueCall{false, v, ok, false} }
	for _, c := range []struct {
		calls []queueCall
		good  bool
	}{
		{[]queueCall{put(1, true, false), put(2, true, false), take(1, true), take(2, true), take(0, false)}, true},
		{[]queueCall{put(1, true, false), put(2, true, false), take(2, true)}, false},
		{[]queueCall{put(1, true, false), take(0, false)}, false},
		{[]queueCall{put(1, true, false), take(1, true), take(1, true)}, false},
		{[]queueCall{put(1, false, true), take(1, true)}, true},
		{[]queueCall{put(1, false, true), take(0, false)}, true},
		{[]queueCall{put(1, false, false)}, false},
		{[]queueCall{put(1, true, false), put(2, true, false), put(3, true, false), put(4, true, false)}, false},
	} {
		var history []porcupine.Operation
		for i, in := range c.calls {
			at := int64(2 * i)
			history = append(history, porcupine.Operation{ClientId: i, Input: in, Call: at, Return: at + 1})
		}
		if got := porcupine.CheckOperations(queueModel.ToModel(), history); got != c.good {
			t.Errorf("%v: %t, want %t", c.calls, got, c.good)
		}
	}
}

// A loss is told once, also if the region was not there when the queue looked for it.
func TestQueueLostForAWhile(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	q := must(NewQueue(ctx, w.at(1, 0), queueRoom))(t)
	if err := q.Put(ctx, 1); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(w.net.Crash(home), w.mem.Close())
	w.mem = nil
	d, err2 := w.net.Restart(home)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	other := must(mr.Alloc(regionBytes, mr.AllocOptions{}))(t)
	defer other.Close()
	must(d.Register(other, mr.Options{Name: "other", Access: mr.RemoteRead}))(t)
	ep := must(d.NewEndpoint(xdpfab.EndpointAttr{}))(t)
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := q.TryTake(ctx); ok || err == nil {
		t.Errorf("without a region: %t, %v", ok, err)
	}
	w.mem = must(mr.Alloc(regionBytes, mr.AllocOptions{}))(t)
	must(d.Register(w.mem, mr.Options{Name: "parts", Access: mr.RemoteRead | mr.RemoteWrite}))(t)
	if _, ok, err := q.TryTake(ctx); ok || !errors.Is(err, ErrMemoryLost) || errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		t.Errorf("the values are gone: %t, %v", ok, err)
	}
	if _, ok, err := q.TryTake(ctx); ok || err != nil {
		t.Errorf("after it was told: %t, %v", ok, err)
	}
}

// What became of a value stays unknown if the region is not there when the queue looks.
func TestQueueGoneUnknown(t *testing.T) {
	w := newWorld(t, 1, 1)
	q := must(NewQueue(patient(t), w.at(1, 0), queueRoom))(t)
	cell := must(w.reg.Uint64(2 * (queueHead / 2)))(t)
	step := func(xdpfab.U128, uint64) (xdpfab.U128, int) {
		if err := w.net.SetFaults(home, 1, xdpfab.Faults{Loss: 1}); err != nil {
			t.Error(err)
		}
		return xdpfab.U128{Hi: 1, Lo: 7}, 0
	}
	restarted := make(chan error, 1)
	go func() {
		for cell.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		d, err := w.net.Restart(home)
		ep, err2 := d.NewEndpoint(xdpfab.EndpointAttr{})
		restarted <- errors.Join(err, err2, ep.Enable(), w.net.SetFaults(home, 1, xdpfab.Faults{}))
	}()
	_, ok, err := q.pass(patient(t), putWord, step)
	if ok || !errors.Is(err, xdpfab.ErrOutcomeUnknown) || errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("%t, %v, want an unknown outcome alone", ok, err)
	}
	checkText(t, "Queue.TryPut", err)
	if err := <-restarted; err != nil {
		t.Error(err)
	}
}

// Values come out in order, lap after lap; a loss of the memory is told once.
func TestQueueInOrder(t *testing.T) {
	w := newWorld(t, 2, 1)
	ctx := patient(t)
	q, r := must(NewQueue(ctx, w.at(1, 0), queueRoom))(t), must(NewQueue(ctx, w.at(2, 0), queueRoom))(t)
	go func() {
		for v := range uint64(50) {
			if err := q.Put(ctx, v); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for want := range uint64(50) {
		if v, err := r.Take(ctx); v != want || err != nil {
			t.Fatalf("%d, %v, want %d", v, err, want)
		}
	}
	for v := range uint64(queueRoom) {
		if ok, err := q.TryPut(ctx, v); !ok || err != nil {
			t.Error(ok, err)
		}
	}
	w.restart(true)
	if ok, err := q.TryPut(ctx, 9); ok || err != nil {
		t.Errorf("a full queue takes another: %t, %v", ok, err)
	}
	if v, ok, err := r.TryTake(ctx); v != 0 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	w.restart(false)
	// the error says what to do with a queue, and not with a handle
	if _, ok, err := r.TryTake(ctx); ok || !errors.Is(err, ErrMemoryLost) || !errors.Is(err, xdpfab.ErrPeerRestarted) ||
		!strings.HasSuffix(err.Error(), ": "+errValuesLost.Error()) {
		t.Errorf("after a loss: %t, %v", ok, err)
	}
	if _, ok, err := r.TryTake(ctx); ok || err != nil {
		t.Errorf("after it was told: %t, %v", ok, err)
	}
	if _, err := NewQueue(ctx, w.at(1, 0), 0); !errors.Is(err, ErrParameter) {
		t.Error(err)
	}
}
