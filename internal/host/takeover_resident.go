// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"slices"

	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/resident"
)

// What is resident moves to another process as file descriptors, pinned or not: the maps
// of the XDP programs, the memories, and the lock of the folder. The programs execute
// and answer all the while. The next process puts its own in their place, one by one,
// and changes nothing else before Resume, so that the handover can be opened again.

// residentState is the resident state apart from the interface's XDP program, which any
// domain leaves (Handover.addDevice). File descriptors are named by their places.
type residentState struct {
	Folder string // in which it is pinned; empty if it is not
	Lock   int    // of the folder; -1 if there is none
	Life   uint64 // what peers know of a store that is vacant; 0 for one that is not
	Estate resident.Estate
}

// addResident adds what is resident, and has the domain leave it when it closes.
func (h *Handover) addResident(host *Host) error {
	r := residence.Of(host.n)
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Executor == nil {
		if at := r.Store; at != nil {
			h.State.Resident = &residentState{Folder: at.Path, Lock: -1, Life: at.Life}
			r.Leaving.Store(true)
		}
		return nil
	}
	s := &residentState{Lock: -1}
	estate, err := r.Executor.Estate()
	if err != nil {
		return err
	}
	s.Estate = *estate
	s.Estate.Maps, err = h.dupAll(estate.Maps)
	for i := range s.Estate.Memories {
		m := &s.Estate.Memories[i]
		if err == nil {
			m.FD, err = h.dup(m.FD)
		}
	}
	if at := r.Store; err == nil && at != nil && at.Folder != nil {
		s.Folder = at.Path
		s.Lock, err = h.dup(at.Folder.FD())
	}
	if err != nil {
		return err
	}
	h.State.Resident = s
	r.Leaving.Store(true)
	return nil
}

// dupAll is dup for file descriptors that have names.
func (h *Handover) dupAll(files map[string]int) (map[string]int, error) {
	at := map[string]int{}
	for name, fd := range files {
		var err error
		if at[name], err = h.dup(fd); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// Folder returns where what is resident is pinned; empty if it is not, or nothing is.
func (h *Handover) Folder() string {
	if s := h.State.Resident; s != nil {
		return s.Folder
	}
	return ""
}

// Resides reports whether the program of resident regions moves. It does so from the
// first resident region on, also without any region left.
func (h *Handover) Resides() bool {
	return h != nil && h.State.Resident != nil && h.State.Resident.Life == 0
}

// estate returns the executor's estate, with descriptors of the handover.
func (h *Handover) estate() (*resident.Estate, error) {
	e := h.State.Resident.Estate
	var err error
	e.Maps, err = h.files(e.Maps)
	e.Memories = slices.Clone(e.Memories)
	for i := range e.Memories {
		m, bad := &e.Memories[i], error(nil)
		m.FD, bad = h.file(m.FD)
		err = errors.Join(err, bad)
	}
	return &e, err
}

// store returns the store of resident state, and the options to open the interface with.
func (h *Handover) store(o *port.Options) (at *residence.Store, err error) {
	s := h.State.Resident
	switch {
	case s == nil:
		return nil, nil
	case s.Life != 0:
		return emptyStore(s), nil
	}
	at = &residence.Store{Path: s.Folder, Former: true, Handed: true, Back: map[uint64]bool{}}
	o.Fits = func(i *port.Interface) error { return h.takeExecutor(at, i) }
	if s.Folder != "" {
		if at.Folder, err = h.lockedFolder(s); err != nil {
			return nil, err
		}
		o.Adopt = at.Folder.State()
	}
	return at, nil
}

// emptyStore returns a store in which nothing is kept yet. What lies in its folder is of
// a process that has failed to take over.
func emptyStore(s *residentState) *residence.Store {
	at := &residence.Store{Path: s.Folder, Life: s.Life, Vacant: true, Back: map[uint64]bool{}}
	if at.Folder, _ = resident.FindFolder(s.Folder); at.Folder != nil { // if not, keep says why
		_ = resident.Remove(s.Folder)
	}
	return at
}

// lockedFolder returns the folder that the handover has.
func (h *Handover) lockedFolder(s *residentState) (*resident.Folder, error) {
	lock, err := h.file(s.Lock)
	if err != nil {
		return nil, err
	}
	return resident.InheritFolder(s.Folder, lock)
}

// takeExecutor has a store go on with the executor: see port.Options.Fits.
func (h *Handover) takeExecutor(at *residence.Store, i *port.Interface) error {
	e, err := h.estate()
	if err != nil {
		return err
	}
	sockets, counters := i.Program().Shared()
	at.Found, err = resident.TakeOver(e, at.Folder, resident.Config{Sockets: sockets, Counters: counters,
		Frags: i.Program().Frags()})
	if err == nil {
		at.Life = at.Found.Node().Life
	}
	return err
}
