// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Regions returns what is registered, by key.
func (x *Executor) Regions() (map[uint64]Region, error) {
	list := map[uint64]Region{}
	var key uint64
	var r executorRegion
	all := x.objects.Regions.Iterate()
	for all.Next(&key, &r) {
		list[key] = Region{Key: key, Length: int(r.Length), Base: r.Base, Auth: r.Auth, Incarnation: r.Incarnation,
			Access: r.Access}
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("resident: reading the regions: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, r := range list {
		r.Name = x.names[key]
		list[key] = r
	}
	return list, nil
}

// The memory of a region is pinned under its size and name, in digits, since bpffs takes
// no dots.
const memoryPin = "memory-"

// maxName is the longest name of a memory that is pinned, in bytes: the name of its file
// has at most 255.
const maxName = 100

// NewMemory is the function NewMemory for an executor that another process may go on
// with. If a process has left a memory of this name and size, it is returned as that
// process left it; found says so. Where the state is pinned, the name must be no other
// memory's.
func (x *Executor) NewMemory(name string, size int) (m *Memory, found bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	path := ""
	if x.book != nil {
		if name == "" || len(name) > maxName {
			return nil, false,
				fmt.Errorf("%w: a name of %d bytes; want 1 to %d, by which the next process finds the memory",
					ErrConfig, len(name), maxName)
		}
		if x.named(name) {
			return nil, false,
				fmt.Errorf("%w: there is a memory of this name; want another one, by which the next process finds it",
					ErrConfig)
		}
		path = filepath.Join(x.book.at, fmt.Sprintf("%s%d-%x", memoryPin, size, name))
	}
	if m, err = x.take(name, size); m == nil && err == nil && path != "" {
		m, err = openMemory(path, size)
	}
	found = m != nil
	if !found && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		if m, err = NewMemory(name, size); err == nil && path != "" {
			err = m.pinAs(path)
		}
	}
	if err != nil {
		return nil, false, err
	}
	m.name, m.path, m.found = name, path, found
	x.memories = append(x.memories, m)
	return m, found, nil
}

// named reports whether there is a memory of a name. x.mu is held.
func (x *Executor) named(name string) bool {
	return slices.ContainsFunc(x.memories, func(m *Memory) bool { return m.name == name })
}

func openMemory(path string, size int) (*Memory, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return nil, fmt.Errorf("resident: memory that was left: %w", err)
	}
	return mapOwn(m, size)
}

func (m *Memory) pinAs(path string) error {
	if err := m.m.Pin(path); err != nil {
		return errors.Join(fmt.Errorf("resident: pinning the memory: %w", err), m.Close())
	}
	return nil
}

// ReleaseMemory lets a memory end with its regions and with this process. Until Sweep one
// that was found is the process before's, too: that one may go on, or another one after
// it.
func (x *Executor) ReleaseMemory(m *Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := slices.Index(x.memories, m)
	if at < 0 {
		return
	}
	x.memories = slices.Delete(x.memories, at, at+1)
	if m.path != "" && (x.swept || !m.found) {
		_ = os.Remove(m.path)
	}
}

// Sweep ends what the process before has left and this one has no use for: memories that
// were not asked for, and registrations other than those whose keys are given.
func (x *Executor) Sweep(used map[uint64]struct{}) error {
	regions, err := x.Regions()
	if err != nil {
		return err
	}
	for key := range regions {
		if _, is := used[key]; !is {
			err = errors.Join(err, x.Deregister(key))
		}
	}
	err = errors.Join(err, each(x.book, namesMap, func(key uint64) {
		if _, is := used[key]; !is {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.dropName(key)
		}
	}))
	return errors.Join(err, x.sweepPlaces(), x.sweepMemories())
}

// sweepPlaces gives up memories without a region: see Executor.entering.
func (x *Executor) sweepPlaces() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, place := range x.places {
		var id uint32
		err := x.objects.Memories.Lookup(place, &id)
		if err == nil {
			err = x.objects.Memories.Delete(place)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("resident: giving up the memory at place %d: %w", place, err)
		}
	}
	return nil
}

func (x *Executor) sweepMemories() (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.handed {
		err = errors.Join(err, m.Close())
	}
	x.handed, x.swept = nil, true
	if x.book == nil {
		return err
	}
	kept := map[string]bool{}
	for _, m := range x.memories {
		kept[m.path] = true
	}
	entries, bad := os.ReadDir(x.book.at)
	err = errors.Join(err, bad)
	for _, e := range entries {
		if path := filepath.Join(x.book.at, e.Name()); strings.HasPrefix(e.Name(), memoryPin) && !kept[path] {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// Replace is Register, in place of a registration of the same key that the process before
// has left, if its key is none of those in use.
func (x *Executor) Replace(m *Memory, r Region, used map[uint64]struct{}) error {
	err := x.Register(m, r)
	if _, is := used[r.Key]; is || x.book == nil || !errors.Is(err, ErrKeyInUse) {
		return err
	}
	if err := x.Deregister(r.Key); err != nil {
		return err
	}
	return x.Register(m, r)
}

// OnMemory reports whether the region of a key is on a memory. What is written down does
// not tell memories of one name apart, which have other sizes.
func (x *Executor) OnMemory(key uint64, m *Memory) bool {
	var r executorRegion
	var at uint32
	info, err := m.m.Info()
	if err == nil {
		err = x.objects.Regions.Lookup(key, &r)
	}
	if err == nil {
		err = x.objects.Memories.Lookup(r.Place, &at)
	}
	if err != nil {
		return false
	}
	id, is := info.ID()
	return is && uint32(id) == at
}

// LeftSession is a session that the process before has left.
type LeftSession struct {
	ID   uint32
	Memo []byte // what it wrote down: see session.TargetParams
	Live bool   // frames run; otherwise answers are given alone
}

// Sessions returns the sessions that can go on in this process, by Server.Adopt. The
// others are ended: their initiators learn that they are unknown.
func (x *Executor) Sessions() (all []LeftSession, err error) {
	var id, place uint32
	var ids []uint32
	it := x.objects.Places.Iterate()
	for it.Next(&id, &place) {
		ids = append(ids, id)
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("resident: reading the sessions: %w", err)
	}
	known := map[uint32]bool{}
	for _, id := range ids {
		l := LeftSession{ID: id, Memo: x.book.read(recordsMap, id)}
		s, _, err := x.find(id)
		if err == nil && len(l.Memo) > 0 && s.Claimed == 0 && (s.Life == lifeLive || s.Life == lifeFrozen) {
			l.Live = s.Life == lifeLive
			all = append(all, l)
			known[id] = true
		} else if err := x.Drop(id); err != nil {
			return nil, err
		}
	}
	return all, each(x.book, recordsMap, func(id uint32) {
		if !known[id] {
			x.book.erase(recordsMap, id)
		}
	})
}

// find returns a session by its id, and its place.
func (x *Executor) find(id uint32) (s executorSession, place uint32, err error) {
	if err = x.objects.Places.Lookup(id, &place); err != nil {
		return s, 0, fmt.Errorf("resident: session %#x: %w", id, err)
	}
	s, err = x.state(place)
	return s, place, err
}

// Drop ends a session that was left, and removes every trace of it.
func (x *Executor) Drop(id uint32) error {
	_, place, err := x.find(id)
	if err != nil {
		return err
	}
	v, _, err := newCaller(x.objects.XdpfabCall).call(callRelease, id, 0, nil)
	if err != nil {
		return err
	}
	x.book.erase(recordsMap, id)
	if v == Drop {
		x.giveBack(place)
	}
	return nil
}

// Adopt adopts a session that the process before left. Most of p is what that process
// wrote down; what was agreed on frames is in the state.
func (v *Server) Adopt(now int64, p session.TargetParams) (*Session, error) {
	s, place, err := v.x.find(uint32(p.Local))
	p.MaxFrame, p.Window = int(s.Payload)+headerLen, int(s.Credit)
	switch {
	case err != nil:
		return nil, err
	case s.Epoch != p.Epoch || s.Remote != p.Remote || s.Claimed != 0 || s.Life != lifeLive && s.Life != lifeFrozen:
		return nil, fmt.Errorf("%w: session %#x is not the one that was written down", ErrDamaged, s.Id)
	case s.Auth != v.x.Digest(p.Key):
		return nil, fmt.Errorf("%w: session %#x has another authorization key than its endpoint has now",
			ErrConfig, s.Id)
	case !Takes(&p):
		return nil, fmt.Errorf("%w: session %#x is to an endpoint that has events or messages now", ErrConfig, s.Id)
	}
	a := v.adopt(now, p, place, &s)
	if s.Attended != 0 { // by that process
		a.attend()
	}
	return a, nil
}

// adopt makes the handle of a session that is at a place.
func (v *Server) adopt(now int64, p session.TargetParams, place uint32, s *executorSession) *Session {
	a := &Session{v: v, p: p, place: place, state: viewAt(v.x.sessions, place), holds: session.NewShare(v.holds),
		heardAt: now, frozen: s.Life == lifeFrozen}
	a.heard = a.state.heard()
	a.losses.acked = a.state.freed()
	v.x.sit(a)
	a.losses.ours = between(a.losses.acked, a.state.expected()-1) // who has answered them is not known
	return a
}

// noteName records the memory that a region registers. x.mu is held.
func (x *Executor) noteName(m *Memory, r *Region) error {
	r.Name.Memory = m.name
	text, err := json.Marshal(r.Name)
	if err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	if err := x.book.write(namesMap, r.Key, text); err != nil {
		return err
	}
	x.names[r.Key] = r.Name
	return nil
}

// dropName erases that. x.mu is held.
func (x *Executor) dropName(key uint64) {
	x.book.erase(namesMap, key)
	delete(x.names, key)
}
