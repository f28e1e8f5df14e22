// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Shutdown refuses new operations with ErrClosed at once, and closes the endpoint after
// the outstanding ones have completed, with success or failure; those that still wait for
// a counter are cancelled. If ctx ends first, it closes the endpoint as Close does and
// returns the context's error. Of an alias it is Close.
func (ep *Endpoint) Shutdown(ctx context.Context) error {
	if ep.isAlias() {
		return ep.endAlias()
	}
	if err := ep.drain(); err != nil {
		return err
	}
	err := ep.drained(ctx)
	return errors.Join(err, ep.Close())
}

// drain refuses new operations and new aliases, unless the endpoint has aliases: then it
// changes nothing and returns ErrBusy.
func (ep *endpoint) drain() error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.phase.Load() == shutOff {
		return nil
	}
	if ep.aliases > 0 {
		return fmt.Errorf("xdpfab: endpoint %d has %d aliases: close them first: %w", ep.number, ep.aliases, ErrBusy)
	}
	ep.phase.Store(draining)
	return nil
}

// drained waits until no operation is published or in flight.
func (ep *endpoint) drained(ctx context.Context) error {
	for ep.origin != nil && ep.phase.Load() == draining {
		empty := true
		ep.stepper.Call(func() {
			for _, r := range ep.rings() { // what completes in the first may start what is in the second
				empty = empty && r.Empty()
			}
		})
		if empty {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(drainPoll):
		}
	}
	return nil
}

// drainPoll is the time between two looks of Shutdown whether everything has completed.
const drainPoll = 100 * time.Microsecond
