// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// errDetached says that the Program is not attached.
var errDetached = errors.New("bpf: program is not attached")

// Renew detaches the program from an interface of the caller's network namespace and
// attaches it again, in the same mode, for drivers that lose their program while the
// kernel shows it as attached. Frames that arrive in between go to the kernel. If it
// fails the program is detached; errors are those of Attach.
func (p *Program) Renew(ifindex int) error {
	ifc, err := net.InterfaceByIndex(ifindex)
	if err != nil {
		return fmt.Errorf("bpf: no interface %d in this network namespace: %w", ifindex, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.link == nil:
		return errDetached
	}
	mode := p.mode
	err = detach(p.link)
	p.link, p.mode = nil, Detached
	if err != nil {
		return fmt.Errorf("bpf: detaching from %s: %w", ifc.Name, err)
	}
	if err := p.attachIn(ifc, mode); err != nil {
		return err
	}
	return p.pinAgain()
}

// pinAgain pins the new link in the place of the one before, if that was pinned.
func (p *Program) pinAgain() error {
	if p.pinned == "" {
		return nil
	}
	if err := os.Remove(p.pinned); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("bpf: %w", err)
	}
	if err := p.link.Pin(p.pinned); err != nil {
		return explain("pinning the link again", err)
	}
	return nil
}
