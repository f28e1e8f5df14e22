// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/resident"
)

// What is resident moves to another process as file descriptors, pinned or not: the maps
// of the XDP programs, the memories, and the lock of the folder. The programs execute
// and answer all the while. The next process puts its own in their place, one by one,
// and changes nothing else before Resume, so that the handover can be opened again.

// residentState is what is resident, beside the XDP program of the interface, which any
// domain leaves (Handover.addDevice). File descriptors are named by their places.
type residentState struct {
	Folder string // in which it is pinned; empty if it is not
	Lock   int    // of the folder; -1 if there is none
	Life   uint64 // what peers know of a home that is vacant; 0 for one that is not
	Estate resident.Estate
}

// canMove returns nil if another process can go on with what is resident.
func (h *residence) canMove() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.executor == nil {
		return nil
	}
	_, err := h.executor.Estate()
	return err
}

// files is how many file descriptors of what is resident move.
func (h *residence) files() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.executor == nil {
		return 0
	}
	e, err := h.executor.Estate()
	if err != nil {
		return 0 // see canMove
	}
	return len(e.Maps) + len(e.Memories) + 1 // the lock of the folder
}

// addResident adds what is resident, and has the domain leave it when it closes.
func (h *Handover) addResident(host *Host) error {
	r := residenceOf(host.n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.executor == nil {
		if at := r.home; at != nil {
			h.state.Resident = &residentState{Folder: at.path, Lock: -1, Life: at.life}
			r.leaving.Store(true)
		}
		return nil
	}
	s := &residentState{Lock: -1}
	estate, err := r.executor.Estate()
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
	if at := r.home; err == nil && at != nil && at.folder != nil {
		s.Folder = at.path
		s.Lock, err = h.dup(at.folder.FD())
	}
	if err != nil {
		return err
	}
	h.state.Resident = s
	r.leaving.Store(true)
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

// folder returns where what is resident is pinned; empty if it is not, or nothing is.
func (h *Handover) folder() string {
	if s := h.state.Resident; s != nil {
		return s.Folder
	}
	return ""
}

// estate returns what there is of the executor.
func (h *Handover) estate() (*resident.Estate, error) {
	e := h.state.Resident.Estate
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

// openDevice opens the interface that the handover has.
func (h *Handover) openDevice(ctx context.Context, ifname string, o port.Options) (node.Device, *home, error) {
	var err error
	if o.Inherit, err = h.device(); err != nil {
		return nil, nil, fmt.Errorf("xdpfab: takeover: %w", err)
	}
	var at *home
	switch s := h.state.Resident; {
	case s == nil:
	case s.Life != 0:
		at = vacantHome(s)
	default:
		at = &home{path: s.Folder, former: true, handed: true, back: map[uint64]bool{}}
		o.Fits = func(i *port.Interface) error { return h.takeExecutor(at, i) }
		if s.Folder != "" {
			if at.folder, err = h.lockedFolder(s); err != nil {
				return nil, nil, fmt.Errorf("xdpfab: takeover: %w", err)
			}
			o.Adopt = at.folder.State()
		}
	}
	i, err := port.Open(ctx, ifname, o)
	if err != nil {
		return nil, nil, errors.Join(err, at.close())
	}
	return node.NetInterface{Interface: i}, at, nil
}

// vacantHome returns a home in which nothing is kept yet. What lies in its folder is of a
// process that has failed to take over.
func vacantHome(s *residentState) *home {
	at := &home{path: s.Folder, life: s.Life, vacant: true, back: map[uint64]bool{}}
	if at.folder, _ = resident.FindFolder(s.Folder); at.folder != nil { // if not, keep says why
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

// takeExecutor has a home go on with the executor: see port.Options.Fits.
func (h *Handover) takeExecutor(at *home, i *port.Interface) error {
	e, err := h.estate()
	if err != nil {
		return err
	}
	sockets, counters := i.Program().Shared()
	at.found, err = resident.TakeOver(e, at.folder, resident.Config{Sockets: sockets, Counters: counters})
	if err == nil {
		at.life = at.found.Node().Life
	}
	return err
}

// mayReplace returns an error if there is a registration of a key that another process
// could still go on with. The lock is held.
func (h *residence) mayReplace(key uint64) error {
	if h.home == nil || !h.home.handed || h.home.resumed {
		return nil
	}
	regions, err := h.executor.Regions()
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
