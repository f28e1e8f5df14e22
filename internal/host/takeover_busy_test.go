// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xsk"
)

// A node that takes over waits for a queue that the kernel is slow to give back, longer
// than the port does, and not forever; and for nothing that does not pass.
func TestTakeoverOfAQueueThatIsFreeLate(t *testing.T) {
	taken := fmt.Errorf("queue 0: %w", xsk.ErrQueueBusy)
	for name, c := range map[string]struct {
		err         error
		free, takes time.Duration // 0 for never
		opens       bool
	}{
		"the queue, late":     {taken, 10 * time.Second, 12 * time.Second, true},
		"the queue, for ever": {taken, 0, 21 * time.Second, false},
		"the interface":       {fmt.Errorf("eth0: %w", errno.Busy), 0, 6 * time.Second, false},
		"another reason":      {errors.New("another"), 0, 3 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := again(t.Context(), func() error {
					if c.free != 0 && time.Since(began) >= c.free {
						return nil
					}
					time.Sleep(3 * time.Second) // the port's own patience
					return c.err
				})
				took := time.Since(began).Truncate(time.Second)
				if (err == nil) != c.opens || took != c.takes || !c.opens && !errors.Is(err, c.err) {
					t.Errorf("%v after %v, want it open: %t after %v", err, took, c.opens, c.takes)
				}
			})
		})
	}
}
