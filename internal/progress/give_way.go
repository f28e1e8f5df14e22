// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"runtime"
	"sync/atomic"
	"time"
)

// giveWayEvery is how long a thread steps before it gives way to goroutines that are
// ready for other reasons than the engine's. To give way takes the poller some 10 µs: the
// runtime hands the processor to another thread and back, since the poller's goroutine is
// locked to its thread.
const giveWayEvery = time.Millisecond

// readied says that a goroutine was made ready that an engine, or a caller, waits for.
var readied atomic.Bool

// steppers is how many steppers of this process are open.
var steppers atomic.Int32

// Readied is called when a goroutine was made ready by what may be the thread that steps
// an engine, which then gives way to it: if Go has no more processors than the process
// has engines, each may have one that is stepped, as in a network in memory, and the
// goroutine would have to wait until one of them has been idle for long, or has lost its
// processor after 10 ms.
func Readied() {
	if int(steppers.Load()) >= runtime.GOMAXPROCS(0) {
		readied.Store(true)
	}
}

// giveReadied lets the goroutines run that were made ready in the last round.
func giveReadied() {
	if readied.Load() {
		readied.Store(false)
		yield()
	}
}

// yield lets the goroutines run that are ready. The scheduler takes every 61st goroutine
// from the queue of those that gave way: that can be this one again. It cannot happen
// twice in a row.
func yield() {
	runtime.Gosched()
	runtime.Gosched()
}

// giveWay lets the goroutines run that are ready, if Go has one processor (GOMAXPROCS):
// in between, as the runtime takes it from a thread that is busy after 10 ms, and before
// this thread sleeps in the port. A system call that blocks keeps that processor until
// the runtime's monitor has seen it twice. The monitor looks every 10 ms, so whoever
// waits for the processor would wait for up to 20 ms: mostly the caller whose operations
// the poller sends. With more processors another one is free, or the monitor looks more
// often.
func giveWay() {
	if runtime.GOMAXPROCS(0) == 1 {
		yield()
	}
}

// giveWayAtTimes gives way if the last time is long enough ago. Its caller has the turn.
func (s *Stepper) giveWayAtTimes() {
	if time.Since(s.gaveWay) >= giveWayEvery {
		giveWay()
		s.gaveWay = time.Now()
	}
}
