// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace, so that sockets can be opened there later.
type namespace struct {
	fd    int // -1 if it is not known
	inode uint64
}

// ofThread is the namespace of the calling thread.
const ofThread = "/proc/thread-self/ns/net"

func thisNamespace() namespace {
	fd, err := unix.Open(ofThread, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return namespace{fd: -1} // without /proc all namespaces are taken for one
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		_ = unix.Close(fd)
		return namespace{fd: -1}
	}
	return namespace{fd, st.Ino}
}

// do runs f on a thread that is in the namespace. To go there takes CAP_SYS_ADMIN, which
// a program that has threads in several namespaces had.
func (n namespace) do(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		moved, err := n.enter()
		if err == nil {
			err = f()
		}
		if !moved {
			runtime.UnlockOSThread()
		}
		result <- err // a thread that has moved ends with its goroutine
	}()
	return <-result
}

// enter moves the thread into the namespace, unless it is there.
func (n namespace) enter() (moved bool, err error) {
	var st unix.Stat_t
	if n.fd < 0 || unix.Stat(ofThread, &st) != nil || st.Ino == n.inode {
		return false, nil
	}
	return true, unix.Setns(n.fd, unix.CLONE_NEWNET)
}

func (n namespace) close() error {
	if n.fd < 0 {
		return nil
	}
	return unix.Close(n.fd)
}
