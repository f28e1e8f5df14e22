// SPDX-License-Identifier: Apache-2.0

package node

import "sync"

// Chores runs functions that must not hold up a caller, in order, on one goroutine. The
// goroutine exists only while chores are waiting.
type Chores struct {
	mu      sync.Mutex
	list    []func()
	running bool
	done    sync.WaitGroup
}

// Add has a chore done.
func (c *Chores) Add(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list = append(c.list, f); !c.running {
		c.running = true
		c.done.Go(c.run)
	}
}

func (c *Chores) run() {
	for {
		c.mu.Lock()
		list := c.list
		if c.list = nil; len(list) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		for _, f := range list {
			f()
		}
	}
}

// Wait returns when all chores have run. No chore may be added after it is called.
func (c *Chores) Wait() { c.done.Wait() }
