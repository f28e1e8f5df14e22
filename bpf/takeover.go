// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// A program can be put in the place of another process's, in one step: a link stays as
// long as anybody has a descriptor of it, and keeps its place on the interface when it
// gets another program.

// Leave returns a descriptor of the link, which is the caller's. The program stays
// attached behind Close, until another one is in its place (TakeOver), or all
// descriptors are closed. Stay undoes that.
func (p *Program) Leave() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return -1, ErrClosed
	}
	l, is := p.link.(interface{ FD() int })
	if !is {
		return -1, errDetached
	}
	fd, err := unix.FcntlInt(uintptr(l.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("bpf: the link's descriptor: %w", err)
	}
	p.stays = true
	return fd, nil
}

// Stay lets Close detach the program again.
func (p *Program) Stay() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stays = false
}

// TakeOver is Attach in the place of the program that another one has left: no packet
// finds none. The descriptor of the link stays the caller's. Close leaves the program
// attached, for the former one to take it over again, until Stay.
//
// Beside those of Attach, errors are ErrStray if the link is another interface's, and
// ErrEnded if it has been detached.
func (p *Program) TakeOver(fd, ifindex int) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bpf: the link's descriptor: %w", err)
	}
	l, err := link.NewFromFD(own)
	if err != nil {
		return errors.Join(explain("looking at the link that was left", err), unix.Close(own))
	}
	if err := p.takePlace(l, ifindex); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// takePlace puts the program in the place of a link's.
func (p *Program) takePlace(l link.Link, ifindex int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.link != nil:
		return ErrAttached
	}
	mode, err := modeOf(l, ifindex)
	if err != nil {
		return err
	}
	if mode == Generic && !p.allowGeneric {
		name := fmt.Sprint("interface ", ifindex)
		if i, err := net.InterfaceByIndex(ifindex); err == nil {
			name = i.Name
		}
		return fmt.Errorf("bpf: %s: the program that was left runs in generic mode: %w; set AllowGeneric", name, ErrNoNative)
	}
	if err := l.Update(p.objects.XdpfabSteer); err != nil {
		return explain("updating the program in place", err)
	}
	p.link, p.mode, p.stays = l, mode, true
	return nil
}
