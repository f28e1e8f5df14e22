// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"time"
)

// BusyPoll makes system calls on the socket drive the NIC's queue in place of
// interrupts (Linux 5.11, CAP_NET_ADMIN). It is for NICs whose interrupts are held back
// meanwhile: by the settings of the queue's NAPI, or by
// /sys/class/net/IF/napi_defer_hard_irqs (2) and gro_flush_timeout (200000 ns). Never use
// it on veth, which becomes ten times slower.
type BusyPoll struct {
	Time   time.Duration // SO_BUSY_POLL, in steps of 1 µs; 0 means no busy polling
	Budget int           // SO_BUSY_POLL_BUDGET, frames for each call; 0 means 64
}

const (
	defaultBusyBudget = 64 // NAPI_POLL_WEIGHT
	maxBusyBudget     = 1<<16 - 1
)

// Check refuses a time or a budget that the kernel has no room for, and a budget alone.
func (b BusyPoll) Check() error {
	if b.Time < 0 || b.Time > time.Second || b.Budget < 0 || b.Budget > maxBusyBudget {
		return fmt.Errorf("busy poll for %v with a budget of %d: want up to 1 s and %d", b.Time, b.Budget,
			maxBusyBudget)
	}
	if b.Budget > 0 && b.Time == 0 {
		return fmt.Errorf("a busy-poll budget of %d, and no busy polling: want a time, too", b.Budget)
	}
	return nil
}
