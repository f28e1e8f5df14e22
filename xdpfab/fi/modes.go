// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
)

// ProgressMode selects the threads that move a domain's operations on; the constants are
// those of fi_domain(3). Its text is "auto" or "manual".
type ProgressMode uint8

const (
	// ProgressAuto is a poller thread for each queue, pinned to a core. It spins
	// while there is work and sleeps when there is none.
	ProgressAuto ProgressMode = iota
	// ProgressManual leaves progress to the goroutines that read completions or wait.
	// Nothing is handed over between cores, so latency is lowest. A domain whose memory
	// peers address needs a goroutine that calls Domain.Progress or waits. One goroutine
	// at a time serves all queues of the domain, whatever it reads or waits for; other
	// goroutines post and read meanwhile.
	//
	// A program that answers messages at once, time after time, acknowledges them with
	// its answers. So it should close the domain before it ends: otherwise the peer may
	// not learn that the last message has arrived.
	//
	// It also serves a caller that keeps control calls apart from all others, a promise
	// that is not needed here (FI_PROGRESS_CONTROL_UNIFIED).
	ProgressManual
)

// CopyMode is the way in which packets get from the NIC to the sockets. Its text is
// "auto", "copy" or "zero-copy".
type CopyMode uint8

// The modes. See xsk.Mode.
const (
	CopyAuto CopyMode = iota // zero-copy when the driver supports it, else copy
	CopyForce
	ZeroCopyForce
)

// XDPMode is where in the kernel's receive path packets are taken. Its text is "auto",
// "native", "generic" or "any".
type XDPMode uint8

// The modes. See bpf.Mode.
const (
	// XDPAuto is native XDP. On an interface that stands for several others, a bond, a
	// team or a netvsc with its virtual function, it is generic XDP, which follows
	// fail-over: a native program would run on those others, and receive nothing.
	XDPAuto    XDPMode = iota
	XDPNative          // or the interface is refused
	XDPGeneric         // works on any interface, and is slower
	XDPAny             // XDPAuto, and generic XDP where the driver has no native one
)

var (
	progressNames = []string{ProgressAuto: "auto", ProgressManual: "manual"}
	copyModeNames = []string{CopyAuto: "auto", CopyForce: "copy", ZeroCopyForce: "zero-copy"}
	xdpModeNames  = []string{XDPAuto: "auto", XDPNative: "native", XDPGeneric: "generic",
		XDPAny: "any"}
)

// String returns the text, or ProgressMode(n) for a value that is none of the constants.
func (p ProgressMode) String() string { return modeString("ProgressMode", progressNames, p) }

// MarshalText implements encoding.TextMarshaler.
func (p ProgressMode) MarshalText() ([]byte, error) { return modeText("progress", progressNames, p) }

// UnmarshalText implements encoding.TextUnmarshaler. It changes nothing when it fails.
func (p *ProgressMode) UnmarshalText(text []byte) error {
	return parseMode("progress", progressNames, text, p)
}

// String returns the text, or CopyMode(n) for a value that is none of the constants.
func (m CopyMode) String() string { return modeString("CopyMode", copyModeNames, m) }

// MarshalText implements encoding.TextMarshaler.
func (m CopyMode) MarshalText() ([]byte, error) { return modeText("copy mode", copyModeNames, m) }

// UnmarshalText implements encoding.TextUnmarshaler. It changes nothing when it fails.
func (m *CopyMode) UnmarshalText(text []byte) error {
	return parseMode("copy mode", copyModeNames, text, m)
}

// String returns the text, or XDPMode(n) for a value that is none of the constants.
func (m XDPMode) String() string { return modeString("XDPMode", xdpModeNames, m) }

// MarshalText implements encoding.TextMarshaler.
func (m XDPMode) MarshalText() ([]byte, error) { return modeText("XDP mode", xdpModeNames, m) }

// UnmarshalText implements encoding.TextUnmarshaler. It changes nothing when it fails.
func (m *XDPMode) UnmarshalText(text []byte) error {
	return parseMode("XDP mode", xdpModeNames, text, m)
}

func modeString[M ~uint8](typ string, names []string, m M) string {
	if int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("%s(%d)", typ, uint8(m))
}

func modeText[M ~uint8](what string, names []string, m M) ([]byte, error) {
	if int(m) < len(names) {
		return []byte(names[m]), nil
	}
	return nil, fmt.Errorf("xdpfab: %s %d: want %s", what, uint8(m), alternatives(names))
}

func parseMode[M ~uint8](what string, names []string, text []byte, m *M) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("xdpfab: %s %q: want %s", what, text, alternatives(names))
	}
	*m = M(i)
	return nil
}

// alternatives returns a list such as "auto, copy or zero-copy".
func alternatives(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// WaitObject is how callers wait for a queue or counter (enum fi_wait_obj); see fi_cq(3)
// and fi_poll(3).
type WaitObject uint8

const (
	// WaitUnspec lets callers wait with Wait, which makes progress, and sleeps when there
	// has been none for a while (FI_WAIT_UNSPEC).
	WaitUnspec WaitObject = iota
	// WaitNone means that no thread waits: Wait is refused with ErrNotImplemented
	// (FI_WAIT_NONE).
	WaitNone
	// WaitFD is WaitUnspec, and a file descriptor for select, poll and epoll besides
	// (FI_WAIT_FD). See CompletionQueue.FD.
	WaitFD
	// WaitMutexCond is WaitUnspec: callers that wait are parked as on a condition
	// variable, except for one that makes progress for all (FI_WAIT_MUTEX_COND).
	WaitMutexCond
	// WaitYield makes Wait look again and again, yielding to other goroutines in between.
	// It never sleeps (FI_WAIT_YIELD).
	WaitYield
)

var waitNames = []string{WaitUnspec: "unspec", WaitNone: "none", WaitFD: "fd", WaitMutexCond: "mutex_cond",
	WaitYield: "yield"}

// String returns the name, such as "fd", or WaitObject(n) for a value that is none of the
// constants.
func (w WaitObject) String() string { return modeString("WaitObject", waitNames, w) }

// check refuses a value that is none of the constants. what is the object that it is for.
func (w WaitObject) check(what string) error {
	if int(w) < len(waitNames) {
		return nil
	}
	return errno.Refuse(ErrNotImplemented,
		"xdpfab: %s with %v: want WaitUnspec, WaitNone, WaitFD, WaitMutexCond or WaitYield", what, w)
}

// AttachMode describes whether a domain goes through the daemon that has the interface.
type AttachMode uint8

// The modes.
const (
	AttachAuto   AttachMode = iota // through the daemon, if one serves the interface
	AttachNever                    // the domain opens the interface itself
	AttachAlways                   // through the daemon, or not at all
)

// String returns the mode as a word.
func (m AttachMode) String() string {
	switch m {
	case AttachAuto:
		return "auto"
	case AttachNever:
		return "never"
	case AttachAlways:
		return "always"
	}
	return fmt.Sprintf("AttachMode(%d)", uint8(m))
}

// MarshalText implements encoding.TextMarshaler.
func (m AttachMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// ErrNoDaemon means that no daemon serves the interface, or none that this program can
// reach.
var ErrNoDaemon = errno.NoDaemon

// ErrHostLost means that the daemon through which the domain uses the interface has
// ended. The domain attaches to the next one by itself.
var ErrHostLost = errno.HostLost

// ControlEnv is the environment variable that names the control socket of the daemon, if
// DomainAttr.Control does not.
const ControlEnv = "XDPFAB_CONTROL"

// control returns the path of the daemon's socket, and whether the caller has chosen it.
func (a *DomainAttr) control(ifname string) (path string, chosen bool) {
	if a.Control != "" {
		return a.Control, true
	}
	if path := os.Getenv(ControlEnv); path != "" {
		return path, true
	}
	return share.DefaultControl(ifname), false
}

// unserved is the error of a socket that was named, and has no daemon.
func unserved(path string, err error) error {
	by := "--control or a configuration file (DomainAttr.Control)"
	if os.Getenv(ControlEnv) == path { // the client puts it into Control
		by = ControlEnv
	}
	return fmt.Errorf("no daemon answers at %s, which %s names: start it there, or correct the path, or give none: %w",
		path, by, err)
}
