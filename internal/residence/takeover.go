// SPDX-License-Identifier: Apache-2.0

//go:build linux

package residence

// Loaded reports whether the executing program was loaded. Its maps stay, also after the
// last resident region has ended.
func (h *Residence) Loaded() bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Executor != nil
}

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
