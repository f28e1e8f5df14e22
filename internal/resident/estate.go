// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A state can pass from one process to the next as file descriptors, pinned or not: the
// one leaves an Estate, and closes its executor; the other one takes it over. The program
// runs meanwhile. User space must not be executing a frame of any of the sessions: see
// Session.Detach.

// Estate is what a process leaves of an executor. Its file descriptors are named by
// their sender: by Executor.Estate their numbers.
type Estate struct {
	Version  string         // of the state
	Node     Node           // as written down, if the state is pinned
	Salt     []byte         // of Executor.Digest
	Maps     map[string]int // file descriptors by name
	Names    map[uint64]Name
	Memories []EstateMemory
}

// EstateMemory is a memory that a process leaves.
type EstateMemory struct {
	Name string
	Size int
	FD   int
}

// Estate returns what another process needs to go on. The descriptors stay the
// executor's. A memory is found there by its name and size, so no two may have the same:
// the error matches ErrConfig if they do.
func (x *Executor) Estate() (*Estate, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &Estate{Version: version, Node: x.node, Salt: x.salt, Maps: map[string]int{}, Names: maps.Clone(x.names)}
	for _, name := range state {
		e.Maps[name] = x.mapOf(name).FD()
	}
	if x.book != nil {
		for name, m := range x.book.maps {
			e.Maps[name] = m.FD()
		}
	}
	seen := map[string]bool{}
	for _, m := range x.memories {
		if seen[m.name] {
			return nil,
				fmt.Errorf(
					"%w: two memories of the name %q; want names of their own, by which the next process finds them",
					ErrConfig, m.name)
		}
		seen[m.name] = true
		e.Memories = append(e.Memories, EstateMemory{m.name, len(m.data), m.m.FD()})
	}
	return e, nil
}

// TakeOver loads the program of this version of the software for a state that another
// process has left: its sessions and regions go on. The descriptors of the estate stay
// the caller's. folder is where the state is pinned; empty if it is not. cfg.Sessions and
// cfg.Regions are not looked at.
//
// Nothing is changed but by what the new executor is asked for, so a process that fails
// leaves the state as it was.
func TakeOver(e *Estate, folder *Folder, cfg Config) (*Executor, error) {
	if e.Version != version {
		return nil, fmt.Errorf("resident: a state of version %s: want %s; stop the former process, and start this one",
			e.Version, version)
	}
	open := e.open
	var b *book
	if folder != nil {
		var err error
		if b, err = openBook(folder.State(), open); err != nil {
			return nil, err
		}
	}
	x, err := loadOver(open, cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resident: taking over: %w", err), b.close())
	}
	x.book, x.node, x.salt = b, e.Node, e.Salt
	maps.Copy(x.names, e.Names)
	for _, m := range e.Memories {
		mem, err := m.open()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("resident: memory %q: %w", m.Name, err), x.Close())
		}
		x.handed = append(x.handed, mem)
	}
	return x, nil
}

// open returns a map of the estate.
func (e *Estate) open(name string) (*ebpf.Map, error) {
	fd, is := e.Maps[name]
	if !is {
		return nil, errors.New("it is missing")
	}
	return mapOfFD(fd)
}

// mapOfFD returns the map of a file descriptor, by a copy of that.
func mapOfFD(fd int) (*ebpf.Map, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return ebpf.NewMapFromFD(own) // which owns it, also if there is an error
}

// open maps a memory of the estate.
func (e *EstateMemory) open() (*Memory, error) {
	m, err := mapOfFD(e.FD)
	if err != nil {
		return nil, err
	}
	mem, err := mapOwn(m, e.Size)
	if err != nil {
		return nil, err
	}
	mem.name = e.Name
	return mem, nil
}

// take returns a memory that another process left, or nil. It can be taken again when
// it has been forgotten. x.mu is held.
func (x *Executor) take(name string, size int) (*Memory, error) {
	if x.named(name) {
		return nil, nil
	}
	for _, m := range x.handed {
		if m.name == name && len(m.data) == size {
			own, err := m.m.Clone()
			if err != nil {
				return nil, fmt.Errorf("resident: memory that was left: %w", err)
			}
			return mapOwn(own, size)
		}
	}
	return nil, nil
}

// Ended returns why the session was retire down, or 0: what TakeOver has to be told.
func (s *Session) Ended() wire.ResetReason { return s.ended }

// TakeOver takes over a session of another process: p is what was agreed with the
// initiator when it began, but for what the state has. A session that was retire down
// runs nothing more, and says so again. One whose program did not learn how a frame ended
// stays as it is.
func (v *Server) TakeOver(now int64, p session.TargetParams, ended wire.ResetReason) (*Session, error) {
	s, place, err := v.x.find(uint32(p.Local))
	if err != nil {
		return nil, err
	}
	if s.Epoch != p.Epoch || s.Remote != p.Remote || s.Life == lifeFree || s.Life == lifeEnded && ended == 0 ||
		!Takes(&p) {
		return nil, fmt.Errorf("%w: session %#x is not the one that was handed over", ErrDamaged, s.Id)
	}
	p.MaxFrame, p.Window = int(s.Payload)+headerLen, int(s.Credit)
	a := v.adopt(now, p, place, &s)
	a.torn, a.ended, a.resetDue = s.Claimed != 0, ended, ended
	v.x.mu.Lock()
	defer v.x.mu.Unlock()
	v.x.adopted[s.Id] = struct{}{}
	return a, nil
}

// DropOthers ends the sessions that are in the state and that no server has taken over.
func (x *Executor) DropOthers() error {
	var id, place uint32
	var ids []uint32
	x.mu.Lock()
	all := x.objects.Places.Iterate()
	for all.Next(&id, &place) {
		if _, is := x.adopted[id]; !is {
			ids = append(ids, id)
		}
	}
	x.mu.Unlock()
	err := all.Err()
	for _, id := range ids {
		err = errors.Join(err, x.Drop(id))
	}
	return err
}

// FD returns the descriptor of the lock, by which a folder passes to another process.
func (f *Folder) FD() int { return int(f.lock.Fd()) }

// InheritFolder is OpenFolder for the folder of another process, which has passed on the
// descriptor of its lock. That stays the caller's.
func InheritFolder(path string, fd int) (*Folder, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("resident: %s: %w", path, err)
	}
	f := &Folder{path: path, lock: os.NewFile(uintptr(own), path)}
	here, err := f.lock.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(path); err == nil && !os.SameFile(here, there) {
			err = errors.New("another folder than that of the former process: want to see the same file system")
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resident: %s: %w", path, err), f.Close())
	}
	return f, nil
}
