// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/process"
)

// ErrSilent means that a process has the control socket, and does not answer.
var ErrSilent = errors.New("the daemon does not answer")

// SilentError says which daemon does not answer, and what can be done. It matches
// ErrSilent.
type SilentError struct {
	Path string
	// PID is its process. It is 0 if the socket does not tell it, since the queue of new
	// connections is full, or the process is in another process namespace.
	PID int
	// Within is how long it was waited for; 0 if it could not be asked.
	Within time.Duration
	// Fixed says that the caller cannot wait longer: its program has no --timeout.
	Fixed   bool
	stopped bool
	foreign bool
}

func silent(path string, pid int, within time.Duration) *SilentError {
	return &SilentError{Path: path, PID: pid, Within: within, stopped: process.Stopped(pid), foreign: elsewhere(pid)}
}

// elsewhere reports whether a process is known to be in another network namespace.
func elsewhere(pid int) bool {
	of := process.Namespace(pid)
	return of != 0 && of != Namespace()
}

// short is a time within which a daemon that is in order need not answer: its machine may
// be busy.
const short = time.Second

// Error names the process, its state if that is the cause, and the remedy.
func (e *SilentError) Error() string {
	what := "lets nobody connect"
	if e.Within > 0 {
		what = fmt.Sprintf("has not answered within %v", e.Within)
	}
	who := fmt.Sprintf("process %d", e.PID)
	if name := process.Name(e.PID); name != "" {
		who += ", " + name
	}
	if e.foreign {
		who += ", of another network namespace"
	}
	switch {
	case e.PID == 0:
		return fmt.Sprintf("the daemon at %s %s: it is stopped, or its machine is overloaded: have it go on (kill "+
			"-CONT), or restart it", e.Path, what)
	case e.stopped:
		return fmt.Sprintf("the daemon at %s %s: it is stopped (%s): have it go on with `kill -CONT %d`", e.Path, what,
			who, e.PID)
	}
	if e.Fixed {
		return fmt.Sprintf("the daemon at %s %s: it or its machine is overloaded, it hangs, or it is no xdpfabd (%s): "+
			"stop or restart it, or name another control socket (--control)", e.Path, what, who)
	}
	if e.Within > 0 && e.Within < short {
		return fmt.Sprintf("the daemon at %s %s: a busy machine may take longer (%s): wait longer (--timeout), at "+
			"least %v, and restart it if it hangs", e.Path, what, who, short)
	}
	return fmt.Sprintf("the daemon at %s %s: it or its machine is overloaded, or it hangs (%s): wait longer "+
		"(--timeout), or restart it", e.Path, what, who)
}

// Unwrap makes the error match ErrSilent.
func (e *SilentError) Unwrap() error { return ErrSilent }
