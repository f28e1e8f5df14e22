// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Errors that this package returns. They match an errno too: the kernel's, or EBADF
// for ErrClosed, EBUSY for ErrAttached and ErrBusy, EINVAL for ErrConfig.
var (
	// ErrClosed means that the Program was closed.
	ErrClosed = errno.New("bpf: program is closed", syscall.EBADF)
	// ErrConfig means that an argument, or a field of Config, has an impossible value.
	ErrConfig = errno.New("bad configuration", syscall.EINVAL)
	// ErrAttached means that the Program is attached already; one serves one interface.
	ErrAttached = errno.New("bpf: program is already attached; load another for another interface", syscall.EBUSY)
	// ErrBusy means that another XDP program holds the interface. errors.As with a
	// *BusyError tells which.
	ErrBusy = errno.New("interface has another XDP program", syscall.EBUSY)
	// ErrNoNative means that the driver has no native XDP, and Any was not the mode.
	ErrNoNative = errors.New("driver has no native XDP")
	// ErrKernel means that the kernel is too old.
	ErrKernel = errors.New("kernel is too old: attaching XDP by bpf_link needs Linux 5.9")
)

// BusyError describes the program that holds an interface. It is ErrBusy and EBUSY
// to errors.Is.
type BusyError struct {
	Interface string
	Mode      Mode // of the other program
	ProgramID uint32
	// Name is the program's, LinkID that of the bpf_link that attaches it. They
	// are zero if there is none or the caller may not know (that takes
	// CAP_SYS_ADMIN).
	Name   string
	LinkID uint32
}

// Error names the program and says how to get rid of it. That is never by force: its
// owner may be at work. Without a name the caller may not have been allowed to see the
// link, which stands for an owner that lives.
func (e *BusyError) Error() string {
	name := ""
	if e.Name != "" {
		name = fmt.Sprintf(" %q", e.Name)
	}
	remedy := "if that is an xdpfab's, go through its daemon, by the control socket; if not, stop its owner, which " +
		"`bpftool link` names to root"
	switch {
	case e.LinkID != 0: // ip(8) cannot remove these: the kernel refuses while the link lives.
		remedy = fmt.Sprintf("stop its owner, which `bpftool link show id %d` names", e.LinkID)
	case e.Name != "":
		remedy = fmt.Sprintf("stop its owner; if it has none, `ip link set dev %s %s off` removes it", e.Interface,
			ipKeyword[e.Mode])
	}
	return fmt.Sprintf("bpf: %s: %v: program %d%s in %v mode; %s, or use another interface",
		e.Interface, ErrBusy, e.ProgramID, name, e.Mode, remedy)
}

// Unwrap makes the error match ErrBusy and EBUSY.
func (e *BusyError) Unwrap() error { return ErrBusy }

// ipKeyword is the name of a mode in `ip link set dev … <keyword> off`.
var ipKeyword = map[Mode]string{Native: "xdpdrv", Generic: "xdpgeneric"}

// remedies are for the errors of attaching, permissions aside. They follow the drivers'
// sources.
var remedies = map[unix.Errno]string{
	unix.ERANGE: "MTU too large for XDP with this driver; lower it with `ip link set dev … mtu`",
	unix.ENOSPC: "fewer RX queues than the peer has TX queues; equalise them with `ethtool -L`",
	unix.EINVAL: "the driver refuses XDP in its present settings; try a lower MTU and `ethtool -K … lro off`",
	unix.ENOMEM: "the driver has no transmit rings left for XDP, or too many CPUs share them; fewer queues may do: " +
		"`ethtool -L`",
	unix.ENODEV: "the interface is gone or in another network namespace",
}
