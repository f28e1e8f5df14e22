// SPDX-License-Identifier: Apache-2.0

package progress

import "runtime"

// giveWay lets the goroutines run that are ready, before this one sleeps in the port, if
// Go has one processor (GOMAXPROCS). A system call that blocks keeps that processor until
// the runtime's monitor has seen it twice. The monitor looks every 10 ms, so whoever
// waits for the processor would wait for up to 20 ms: mostly the caller whose operations
// the poller sends. With more processors another one is free, or the monitor looks more
// often.
//
// The scheduler takes every 61st goroutine from the queue of those that gave way: that
// can be this one again. It cannot happen twice in a row.
func giveWay() {
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.Gosched()
		runtime.Gosched()
	}
}
