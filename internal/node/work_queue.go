// SPDX-License-Identifier: Apache-2.0

package node

import "sync"

// WorkQueue runs functions that must not hold up a caller, in order, on one goroutine.
// The goroutine exists only while functions are waiting.
type WorkQueue struct {
	mu      sync.Mutex
	list    []func()
	running bool
	done    sync.WaitGroup
}

// Add has a function run.
func (c *WorkQueue) Add(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list = append(c.list, f); !c.running {
		c.running = true
		c.done.Go(c.run)
	}
}

func (c *WorkQueue) run() {
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

// Wait returns when all functions have run. Nothing may be added after it is called.
func (c *WorkQueue) Wait() { c.done.Wait() }
