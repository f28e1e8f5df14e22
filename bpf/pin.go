// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// A pinned program outlives its process: the link, which holds the program, and the maps
// are files of a BPF file system (bpffs). The link is pinned last and removed first, so a
// folder with a link is complete, and in a folder without one no program runs.

// pinnedLink is the name of the link in the folder.
const pinnedLink = "link"

// ErrOtherInterface means that the program to go on with is not attached to the
// interface, but to another one.
var ErrOtherInterface = errno.New("what another process has left belongs to another interface", syscall.ESTALE)

// ErrEnded means that the program pinned in a folder runs nowhere: its interface was
// removed, or it was detached.
var ErrEnded = errno.New("what is pinned there has ended with its interface", syscall.ENOLINK)

// shared returns the maps that the next program will share, by name.
func (p *Program) shared() map[string]*ebpf.Map {
	m := &p.objects.steerMaps
	return map[string]*ebpf.Map{steerMapSockets: m.Sockets, steerMapExecutors: m.Executors,
		steerMapCounters: m.Counters, steerMapServed: m.Served}
}

// Pin keeps the attached program in a folder of a BPF file system, where it outlives
// Close and this process: Adopt finds it there. Unpin and DetachPinned end it.
func (p *Program) Pin(folder string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.link == nil:
		return fmt.Errorf("bpf: %w: a program that is not attached cannot be pinned; attach it first", ErrConfig)
	}
	for name, m := range p.shared() {
		if err := m.Pin(filepath.Join(folder, name)); err != nil {
			return explain("pinning "+name, err)
		}
	}
	if err := p.link.Pin(filepath.Join(folder, pinnedLink)); err != nil {
		return explain("pinning the link", err)
	}
	p.pinned = filepath.Join(folder, pinnedLink)
	return nil
}

// Pinned reports whether a folder has a program that runs without a process.
func Pinned(folder string) bool {
	_, err := os.Lstat(filepath.Join(folder, pinnedLink))
	return err == nil
}

// Unpin lets the program end with Close, or with this process, again. The maps stay in
// the folder, which is the caller's to remove.
func (p *Program) Unpin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.pinned == "" {
		return nil
	}
	path := p.pinned
	p.pinned = ""
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("bpf: %w", err)
	}
	return nil
}

// DetachPinned ends the program that is pinned in a folder, whose process has died.
func DetachPinned(folder string) error {
	l, err := link.LoadPinnedLink(filepath.Join(folder, pinnedLink), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain("opening the pinned link", err)
	}
	if err := l.Unpin(); err != nil {
		return errors.Join(fmt.Errorf("bpf: %w", err), l.Close())
	}
	return detach(l)
}

// Adopt loads the program with the maps that another process has pinned in a folder, for
// Program.Replace to put it in the place of the program attached to the interface.
// Sockets, executor, addresses and counters are those of the maps, but for the sockets of
// the process, if it has died. cfg.Addrs is not looked at.
//
// The error is ErrOtherInterface if the program is another interface's, ErrEnded if it
// runs nowhere, and matches fs.ErrNotExist if the folder has none.
func Adopt(folder string, cfg Config, queues, ifindex int) (*Program, error) {
	l, mode, err := linkIn(folder, ifindex)
	if err != nil {
		return nil, err
	}
	p, err := loadOver(cfg, queues, func(name string) (*ebpf.Map, error) {
		return ebpf.LoadPinnedMap(filepath.Join(folder, name), nil)
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	p.link, p.mode, p.pinned = l, mode, filepath.Join(folder, pinnedLink)
	return p, nil
}

// Replace replaces the former program by one of Adopt or TakeOver, in one step: each
// packet meets one of the two. Until Replace the former program runs, also after Close.
func (p *Program) Replace() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.link == nil || p.pinned == "" && !p.stays:
		return fmt.Errorf("bpf: %w: a program that was neither adopted nor taken over replaces none; attach it",
			ErrConfig)
	}
	if err := p.link.Update(p.objects.XdpfabSteer); err != nil {
		return explain("updating the program in place", err)
	}
	return nil
}

// Fits reports the error that Adopt would return for the link and the number of queues,
// and changes nothing.
func Fits(folder string, queues, ifindex int) error {
	l, _, err := linkIn(folder, ifindex)
	if err != nil {
		return err
	}
	defer l.Close()
	m, err := ebpf.LoadPinnedMap(filepath.Join(folder, steerMapSockets), &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return explain("opening the map "+steerMapSockets, err)
	}
	defer m.Close()
	return queuesFit(m, queues)
}

// QueuesError is the error of a program that has been attached to an interface with
// another number of receive queues than it has now. It matches ErrConfig.
type QueuesError struct{ Had, Has int }

// Error has both numbers.
func (e *QueuesError) Error() string {
	return fmt.Sprintf("bpf: the interface had %d receive queues when the program was attached, and has %d now", e.Had,
		e.Has)
}

// Unwrap returns ErrConfig.
func (e *QueuesError) Unwrap() error { return ErrConfig }

// queuesFit reports an error unless a map of sockets has places for so many queues.
func queuesFit(sockets *ebpf.Map, queues int) error {
	if n := int(sockets.MaxEntries()) / Lanes; n != queues {
		return &QueuesError{n, queues}
	}
	return nil
}

// linkIn returns the link that is pinned in a folder, and how its program runs.
func linkIn(folder string, ifindex int) (link.Link, Mode, error) {
	l, err := link.LoadPinnedLink(filepath.Join(folder, pinnedLink), nil)
	if err != nil {
		return nil, Detached, explain("opening the pinned link", err)
	}
	return running(l, ifindex)
}

// running adds how the program of a link runs, or closes the link if it does not run
// there.
func running(l link.Link, ifindex int) (link.Link, Mode, error) {
	mode, err := modeOf(l, ifindex)
	if err != nil {
		return nil, Detached, errors.Join(err, l.Close())
	}
	return l, mode, nil
}

// modeOf returns how the program of a link runs on an interface of the caller's network
// namespace.
func modeOf(l link.Link, ifindex int) (Mode, error) {
	info, err := l.Info()
	if err != nil {
		return Detached, explain("reading the link", err)
	}
	if info.XDP() == nil || info.XDP().Ifindex == 0 {
		return Detached, fmt.Errorf("bpf: %w", ErrEnded)
	}
	on, err := attachedTo(ifindex)
	if err != nil {
		return Detached, err
	}
	for _, m := range []Mode{Native, Generic} {
		if on[m] != 0 && on[m] == uint32(info.Program) {
			return m, nil
		}
	}
	name := fmt.Sprint("interface ", ifindex)
	if i, err := net.InterfaceByIndex(ifindex); err == nil {
		name = i.Name
	}
	return Detached, fmt.Errorf("bpf: %s: %w", name, ErrOtherInterface)
}

// loadOver loads the program with the maps of another one, as open returns them.
func loadOver(cfg Config, queues int, open func(name string) (*ebpf.Map, error)) (*Program, error) {
	maps := map[string]*ebpf.Map{}
	defer func() {
		for _, m := range maps {
			_ = m.Close()
		}
	}()
	for _, name := range []string{steerMapSockets, steerMapExecutors, steerMapCounters, steerMapServed} {
		m, err := open(name)
		if err != nil {
			return nil, explain("opening the map "+name, err)
		}
		maps[name] = m
	}
	// of a version with other reasons: they begin anew
	if m := maps[steerMapCounters]; m.MaxEntries() != uint32(NumReasons) {
		delete(maps, steerMapCounters)
		_ = m.Close()
	}
	if err := queuesFit(maps[steerMapSockets], queues); err != nil {
		return nil, err
	}
	cfg.Addrs = nil
	p, err := loadWith(cfg, queues, &ebpf.CollectionOptions{MapReplacements: maps})
	if errors.Is(err, unix.EINVAL) { // the kernel says no more
		err = errno.Refuse(ErrConfig,
			"%w; the program that is there may take packets in several buffers, and this one not, or "+
				"the reverse: want the MTU as it was", err)
	}
	if err != nil {
		return nil, err
	}
	var a address
	var is uint8
	all := p.objects.Served.Iterate()
	for all.Next(&a, &is) {
		p.addrs[a] = struct{}{}
	}
	if err := all.Err(); err != nil {
		return nil, errors.Join(explain("reading the addresses", err), p.Close())
	}
	return p, nil
}
