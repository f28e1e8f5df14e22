// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"fmt"
	"sync"
	"time"
)

// tscFlag tells an x86 kernel under TCG the frequency of its time stamp counter, which is
// the host's. Left alone the kernel measures it against a timer for some milliseconds. If
// the host takes the processor away then, the kernel believes in a slower counter, and
// its clock runs too fast: by six and by fifty times has been seen, and every time limit
// in the guest ended early.
func tscFlag(a *Arch) string {
	if a != AMD64 || !a.Native() {
		return ""
	}
	return fmt.Sprintf("tsc_early_khz=%d", tscKHz())
}

// tscKHz is the frequency of the host's time stamp counter, in kHz.
var tscKHz = sync.OnceValue(func() int64 {
	t1, c1 := sampleClocks()
	time.Sleep(100 * time.Millisecond)
	t2, c2 := sampleClocks()
	return (c2 - c1) * int64(time.Millisecond) / int64(t2.Sub(t1))
})

// sampleClocks reads the time and the counter at the same time, or nearly: the best of
// several readings, since the process may be interrupted in any.
func sampleClocks() (at time.Time, count int64) {
	best := time.Hour
	for range 100 {
		before := time.Now()
		c := ticks()
		if d := time.Since(before); d < best {
			best, at, count = d, before.Add(d/2), c
		}
	}
	return at, count
}

// checkClock refuses a command that took longer by the guest's clock than by the host's:
// its time limits ended early. The other way about, its output was slow to arrive.
func checkClock(guest, host time.Duration) error {
	if guest <= host+host/10+time.Second {
		return nil
	}
	return fmt.Errorf("%w: its clock runs too fast: %v passed there and %v on the host, so no time limit holds",
		errRequest, guest, host)
}
