// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
)

// Mode is where in the receive path the program runs.
type Mode uint8

// The modes.
const (
	// Auto, given to Attach, is Native.
	Auto Mode = iota
	// Native is in the driver, before a socket buffer exists.
	Native
	// Generic is in the network core, after a socket buffer has been built: it
	// works everywhere, is slower, and AF_XDP copies.
	Generic
	// Detached is the mode of a Program that is not attached.
	Detached
	// Any, given to Attach, is Native, or Generic where the driver has no native XDP.
	// Program.Mode tells the outcome.
	Any
)

var modeNames = [...]string{"auto", "native", "generic", "detached", "any"}

// String returns the mode's name, such as "native".
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// attachFlags holds the kernel's flag for each mode.
var attachFlags = map[Mode]link.XDPAttachFlags{
	Native:  link.XDPDriverMode,
	Generic: link.XDPGenericMode,
}

// Attach makes an interface of the caller's network namespace run the program,
// until Close or the end of the process.
//
// Errors: ErrBusy if another XDP program is there (it is left alone),
// ErrKernel, ErrAttached, ErrClosed, fs.ErrPermission, or a *Refusal, which may be
// ErrNoNative.
func (p *Program) Attach(ifindex int, mode Mode) error {
	first, fallback := mode, Detached
	switch mode {
	case Auto:
		first = Native
	case Any:
		first, fallback = Native, Generic
	}
	if _, ok := attachFlags[first]; !ok {
		return fmt.Errorf("bpf: %w: cannot attach in mode %v; want auto, native, generic or any", ErrConfig, mode)
	}
	ifc, err := net.InterfaceByIndex(ifindex)
	if err != nil {
		return fmt.Errorf("bpf: no interface %d in this network namespace: %w", ifindex, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.link != nil:
		return ErrAttached
	}
	if b, err := Holder(ifc.Name, ifc.Index); err != nil {
		return err
	} else if b != nil {
		return b
	}
	err = p.attachIn(ifc, first)
	if errors.Is(err, ErrNoNative) && fallback != Detached {
		err = p.attachIn(ifc, fallback)
	}
	if err != nil {
		return err
	}
	return p.pinAgain() // one that was taken over, and whose link had ended
}

// attachIn attaches in one mode and asks the kernel whether the program really
// runs in it. The caller holds p.mu.
func (p *Program) attachIn(ifc *net.Interface, m Mode) error {
	o := link.XDPOptions{Program: p.objects.XdpfabSteer, Interface: ifc.Index, Flags: attachFlags[m]}
	l, err := link.AttachXDP(o)
	if errno := unix.Errno(0); errors.As(err, &errno) && mayBeDriver(errno) {
		switch r, odd := p.refusal(ifc.Name, ifc.Index, m, errno); {
		case odd != nil:
			return errors.Join(attachError(ifc, m, err), odd)
		case r != nil:
			return r
		}
		l, err = link.AttachXDP(o)
	}
	if err != nil {
		return attachError(ifc, m, err)
	}
	on, err := attachedTo(ifc.Index)
	if err == nil && on[m] != p.id {
		err = fmt.Errorf("bpf: %s: attached in %v mode, but the kernel reports programs %v", ifc.Name, m, on)
	}
	if err != nil {
		return errors.Join(err, detach(l))
	}
	p.link, p.mode = l, m
	return nil
}

// detach detaches the program at once. To close the link does that too, but not before
// every process that looks at it, as linkOf does, has closed it as well.
func detach(l link.Link) error {
	_ = l.Detach() // the kernel may refuse it to a process that has given up privileges
	return l.Close()
}

// mayBeDriver reports whether a driver may have refused the program, and not the kernel
// the process, or the interface because of another program.
func mayBeDriver(errno unix.Errno) bool {
	others := []unix.Errno{unix.EPERM, unix.EACCES, unix.EBUSY, unix.EEXIST, unix.EBADF, unix.EINTR}
	return !kernel.Before(kernel.BPFLink) && !slices.Contains(others, errno)
}

// attachError finds out why an attachment failed.
func attachError(ifc *net.Interface, m Mode, err error) error {
	doing := fmt.Sprintf("attaching to %s in %v mode", ifc.Name, m)
	switch {
	case kernel.Before(kernel.BPFLink):
		return fmt.Errorf("bpf: %s: %w: %w", doing, ErrKernel, err)
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		// Another program was attached after the first look.
		if b, _ := Holder(ifc.Name, ifc.Index); b != nil {
			return b
		}
	}
	return explain(doing, err)
}

// Mode reports how the program runs now: Native or Generic, or Detached, also if
// the interface is gone, or another process cut the link or attached another
// program.
func (p *Program) Mode() Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.link == nil {
		return Detached
	}
	info, err := p.link.Info()
	if err != nil || info.XDP() == nil || info.XDP().Ifindex == 0 || uint32(info.Program) != p.id {
		return Detached
	}
	return p.mode
}

// Holder describes the program, native or generic, that is attached to an interface
// of the caller's network namespace; nil if there is none. Attach refuses an
// interface that has one.
func Holder(ifname string, ifindex int) (*BusyError, error) {
	on, err := attachedTo(ifindex)
	if err != nil {
		return nil, err
	}
	for _, m := range []Mode{Native, Generic} {
		if id := on[m]; id != 0 {
			return &BusyError{Interface: ifname, Mode: m, ProgramID: id, Name: programName(id),
				LinkID: linkOf(id, ifindex)}, nil
		}
	}
	return nil, nil
}

// programName is best effort: opening a program by id takes CAP_SYS_ADMIN.
func programName(id uint32) string {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return ""
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// linkOf finds the bpf_link that attaches a program to an interface, or 0. Best
// effort, like programName.
func linkOf(program uint32, ifindex int) uint32 {
	it := new(link.Iterator)
	defer func() { it.Close() }()
	for end := time.Now().Add(linkPatience); ; {
		switch next, err := nextLink(it); {
		case errors.Is(err, unix.EAGAIN) && time.Now().Before(end):
			// A process is making the next link, which cannot be looked at until then.
			time.Sleep(time.Millisecond)
			it = &link.Iterator{ID: it.ID} // the one before has closed its link
			continue
		case !next:
			return 0
		}
		info, err := it.Link.Info()
		if err != nil || info.Type != link.XDPType || info.XDP() == nil {
			continue
		}
		if uint32(info.Program) == program && int(info.XDP().Ifindex) == ifindex {
			return uint32(it.ID)
		}
	}
}

// linkPatience is how long linkOf waits for links that are being made.
const linkPatience = time.Second

// nextLink goes to the next link. Tests replace it.
var nextLink = func(it *link.Iterator) (bool, error) { return it.Next(), it.Err() }

// errDetached means that the Program is not attached.
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
