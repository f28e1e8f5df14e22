// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"

	"github.com/xdpfab/xdpfab/bpf"
)

// One process after the other can use an interface: the XDP program is replaced in one
// step.

// Inheritance is what an interface leaves to the next user, in this process or another.
type Inheritance struct {
	Program bpf.Files // descriptors of the attached XDP program
	inheritedSpares
}

// Leave returns what the next user of the interface needs. From then on Close leaves the
// XDP program attached, until somebody takes its place or the descriptors are closed,
// and the sockets of lent queues in it. The descriptors are the caller's.
func (i *Interface) Leave() (*Inheritance, error) {
	files, err := i.program.Leave()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.Name(), err)
	}
	h := &Inheritance{Program: files}
	for _, m := range i.aside {
		if err := m.leave(h); err != nil {
			h.Close()
			return nil, fmt.Errorf("%s: %w", i.Name(), err)
		}
	}
	return h, nil
}

// Reopens returns nil if the next user can open the interface as it is at present. This
// one may have outlived a change after which no process can open it, itself included.
func (i *Interface) Reopens(maps bool) error {
	now, err := i.resolver.LinkState()
	if err != nil {
		return err
	}
	return i.plan.Reopens(now.Name, now.MTU, now.AdminUp, maps)
}

// Close closes the descriptors.
func (h *Inheritance) Close() {
	h.Program.Close()
	h.closeSockets()
}

// With returns a copy, with what f makes of each descriptor in its place.
func (h *Inheritance) With(f func(fd int) (int, error)) (*Inheritance, error) {
	c := &Inheritance{Program: bpf.Files{}}
	for name, fd := range h.Program {
		var err error
		if c.Program[name], err = f(fd); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, c.copySockets(h, f)
}

// Settle ends the time in which somebody else may have the interface again: Close
// detaches the XDP program from now on.
func (i *Interface) Settle() { i.program.Stay() }
