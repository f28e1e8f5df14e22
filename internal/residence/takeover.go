// SPDX-License-Identifier: Apache-2.0

package residence

import (
	"fmt"
)

// CanMove returns nil if another process can go on with what is resident.
func (h *Residence) CanMove() error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Executor == nil {
		return nil
	}
	_, err := h.Executor.Estate()
	return err
}

// Files is how many file descriptors of what is resident move.
func (h *Residence) Files() int {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Executor == nil {
		return 0
	}
	e, err := h.Executor.Estate()
	if err != nil {
		return 0 // see canMove
	}
	return len(e.Maps) + len(e.Memories) + 1 // the lock of the folder
}

// mayReplace returns an error if there is a registration of a key that another process
// could still go on with. The lock is held.
func (h *Residence) mayReplace(key uint64) error {
	if h.Home == nil || !h.Home.Handed || h.Home.resumed {
		return nil
	}
	regions, err := h.Executor.Regions()
	if err != nil {
		return err
	}
	if r, is := regions[key]; is {
		return fmt.Errorf("key %#x is handed over with region %q of %d bytes: want the same memory, length, rights,"+
			" authorization key, incarnation and kind of addresses as before; "+
			"or stop the former process, and start this one", key, r.Name.Name, r.Length)
	}
	return nil
}
