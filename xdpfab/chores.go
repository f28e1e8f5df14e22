// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "sync"

// chores are done one after the other by a goroutine, which there is while there are any:
// what must not hold up a caller.
type chores struct {
	mu      sync.Mutex
	list    []func()
	running bool
	done    sync.WaitGroup
}

// add has a chore done.
func (c *chores) add(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list = append(c.list, f); !c.running {
		c.running = true
		c.done.Go(c.run)
	}
}

func (c *chores) run() {
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

// wait returns when all chores are done. None is added any more.
func (c *chores) wait() { c.done.Wait() }
