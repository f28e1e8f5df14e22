// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"fmt"
	"sync"
)

// Touched is what the program has applied to a region: operations that returned what they
// found, and operations that did not, with the bytes of each kind.
type Touched struct{ Reads, Writes, BytesRead, BytesWritten uint64 }

// Count reads what the program has applied to a region, for as long as that is
// registered. The sums are the executor's, and those of another one begin anew: what
// another process counts does not concern this one.
type Count struct {
	mu   sync.Mutex
	live touchedView
	last Touched // when it ended
	over bool
}

// Count has the program count what it applies to the region of a key from now on. It
// counts before the answer leaves.
func (x *Executor) Count(key uint64) (*Count, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c := x.counting[key]; c != nil {
		return c, nil
	}
	var r executorRegion
	if err := x.objects.Regions.Lookup(key, &r); err != nil {
		return nil, fmt.Errorf("resident: counting what is done to key %#x: %w", key, err)
	}
	c := &Count{live: touchedAt(x.touches, r.Place)}
	c.live.count(true)
	x.counting[key] = c
	return c, nil
}

// Now returns the sums, which end with the registration and with the executor.
func (c *Count) Now() Touched {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return c.last
	}
	return c.live.now()
}

// Arm has the program call what OnTouch was given with the next operation that it counts.
// What it has counted before, Now finds.
func (c *Count) Arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.live.arm()
	}
}

// end ends the count of a region that the program no longer reaches, or that another
// process takes over.
func (c *Count) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live.count(false)
	c.last, c.over = c.live.now(), true
}

// discount ends the count of a key, if there is one. x.mu is held.
func (x *Executor) discount(key uint64) {
	if c := x.counting[key]; c != nil {
		c.end()
		delete(x.counting, key)
	}
}
