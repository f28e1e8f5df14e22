// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"fmt"
	"net"
	"os"
	"time"

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

// Within is the network namespace, that of the calling thread, of whose daemons one may
// be asked: 0, for any, if the caller has chosen its socket.
func Within(chosen bool) (namespace uint64) {
	if chosen {
		return 0
	}
	return node.Here(0).Namespace
}

// elsewhere reports whether a process is known to be in another network namespace than
// that, if it is not 0. Of this process it is not known: its threads may be in several.
func elsewhere(pid int, namespace uint64) bool {
	of := process.Namespace(pid)
	return namespace != 0 && of != 0 && pid != os.Getpid() && of != namespace
}

// unanswered is the error of a daemon that had not answered for so long when a context
// ended, for a cause. A stopped process is named, with the remedy.
func unanswered(path string, pid int, after time.Duration, cause error) error {
	after = after.Round(time.Millisecond)
	if !process.Stopped(pid) {
		return fmt.Errorf("daemon at %s: no answer for %v: %w", path, after, cause)
	}
	return &hostError{fmt.Sprintf("daemon at %s: it has not answered for %v: it is stopped (process %d, %s): have it "+
		"go on with `kill -CONT %[3]d`", path, after, pid, process.Name(pid)), []error{ErrHostSilent, cause}}
}
