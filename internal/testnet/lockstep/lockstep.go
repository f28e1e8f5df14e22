// SPDX-License-Identifier: Apache-2.0

// Package lockstep lets tests have two threads meet, as litmus tests of the memory order
// do.
package lockstep

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Run has two goroutines run a and b at the same time, round after round, and check
// when both are through, for as many rounds as fit into a moment.
func Run(a, b func(), check func(round uint64)) {
	const rounds, moment = 50_000, 300 * time.Millisecond
	var began, ended atomic.Uint64 // rounds
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for round := uint64(1); ; round++ {
			for spin := 0; began.Load() < round; spin++ {
				if over.Load() {
					return
				}
				if spin > 1000 {
					runtime.Gosched()
				}
			}
			for range round / 8 % 128 {
				began.Load()
			}
			b()
			ended.Store(round)
		}
	}()
	for round, end := uint64(1), time.Now().Add(moment); round <= rounds &&
		(round == 1 || time.Now().Before(end)); round++ {
		began.Store(round)
		for range round % 128 { // now the one, now the other is ahead
			began.Load()
		}
		a()
		for spin := 0; ended.Load() < round; spin++ {
			if spin > 1000 {
				runtime.Gosched()
			}
		}
		check(round)
	}
	over.Store(true)
	<-done
}
