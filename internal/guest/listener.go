// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/process"
)

// listener returns the process that listens at the other end, 0 if it cannot be seen.
func listener(conn *net.UnixConn) (pid int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(c.Pid)
		}
	})
	return pid
}

// elsewhere reports whether a process is known to be in another network namespace than
// the caller. Of this process it is not known: its threads may be in several.
func elsewhere(pid int) bool {
	of := process.Namespace(pid)
	return of != 0 && pid != os.Getpid() && of != node.Here(0).Namespace
}

// unanswered is the error of a daemon that has not answered until a context ended, for a
// cause. A stopped process is named, with the remedy.
func unanswered(path string, pid int, cause error) error {
	if !process.Stopped(pid) {
		return fmt.Errorf("daemon at %s: %w", path, cause)
	}
	return &hostError{fmt.Sprintf("daemon at %s: it does not answer: it is stopped (process %d, %s): have it go on "+
		"with `kill -CONT %[2]d`", path, pid, process.Name(pid)), []error{ErrHostSilent, cause}}
}
