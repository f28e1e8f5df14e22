// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// An attached program can pass from one process to the next as file descriptors, pinned
// or not: a link stays as long as any process has a descriptor of it, and keeps its place
// on the interface when it gets another program, which uses the same maps.

// Files are the descriptors of an attached program, by name: of its link, and of the maps
// that the next program shares.
type Files map[string]int

// Close closes the descriptors.
func (f Files) Close() {
	for name, fd := range f {
		_ = unix.Close(fd)
		delete(f, name)
	}
}

// add adds a copy of a descriptor.
func (f Files) add(name string, fd int) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bpf: the descriptor of %s: %w", name, err)
	}
	f[name] = own
	return nil
}

// copyOf returns a copy of a descriptor.
func (f Files) copyOf(name string) (int, error) {
	fd, is := f[name]
	if !is {
		return -1, fmt.Errorf("%w: no file descriptor of %s", ErrConfig, name)
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}

// open opens a map by a copy of its descriptor.
func (f Files) open(name string) (*ebpf.Map, error) {
	fd, err := f.copyOf(name)
	if err != nil {
		return nil, err
	}
	return ebpf.NewMapFromFD(fd) // which owns it, also if there is an error
}

// Leave returns what another process needs to go on with the program (TakeOver); the
// descriptors are the caller's. The program stays attached behind Close, until another
// one is in its place, or all descriptors are closed. Stay undoes that.
func (p *Program) Leave() (Files, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	l, is := p.link.(interface{ FD() int })
	if !is {
		return nil, errDetached
	}
	files := Files{}
	err := files.add(pinnedLink, l.FD())
	for name, m := range p.shared() {
		err = errors.Join(err, files.add(name, m.FD()))
	}
	if err != nil {
		files.Close()
		return nil, err
	}
	p.stays = true
	return files, nil
}

// Stay lets Close detach the program again, unless it is pinned.
func (p *Program) Stay() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stays = false
}

// TakeOver is Adopt for a program that another process left (Leave). The descriptors
// stay the caller's. folder is where the program is pinned; empty if it is not. Close
// leaves what is attached, for the former process to go on with it, until Stay.
//
// A program of another number of queues, or that differs in Config.Frags, is replaced by
// one with maps of its own, unless there is an executor. If the link was detached
// meanwhile, the program shares the maps, and has to be attached (Attach).
//
// Errors are those of Adopt, but for ErrEnded.
func TakeOver(files Files, folder string, cfg Config, queues, ifindex int) (*Program, error) {
	l, mode, err := files.place(folder, ifindex)
	if err != nil {
		return nil, err
	}
	p, err := loadOver(cfg, queues, files.open)
	if errors.Is(err, ErrConfig) && !files.haveExecutor() {
		p, err = Load(cfg, queues)
	}
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	if folder != "" {
		p.pinned = filepath.Join(folder, pinnedLink)
	}
	p.link, p.mode, p.stays = l, mode, true
	return p, nil
}

// place returns the link, and how its program runs; nil if it has been detached. One that
// was pinned may have another in its place: a process that did not come to the end of its
// takeover can have attached its program anew.
func (f Files) place(folder string, ifindex int) (link.Link, Mode, error) {
	fd, err := f.copyOf(pinnedLink)
	if err != nil {
		return nil, Detached, explain("the link that was left", err)
	}
	l, err := link.NewFromFD(fd) // which owns fd, also if there is an error
	if err != nil {
		return nil, Detached, explain("looking at the link that was left", err)
	}
	l, mode, err := running(l, ifindex)
	if errors.Is(err, ErrEnded) && folder != "" {
		l, mode, err = linkIn(folder, ifindex)
	}
	if errors.Is(err, ErrEnded) || errors.Is(err, os.ErrNotExist) {
		return nil, Detached, nil
	}
	return l, mode, err
}

// haveExecutor reports whether the program calls an executor, or may do so.
func (f Files) haveExecutor() bool {
	m, err := f.open(steerMapExecutors)
	if err != nil {
		return true
	}
	defer m.Close()
	var id uint32
	return !errors.Is(m.Lookup(uint32(0), &id), ebpf.ErrKeyNotExist)
}
