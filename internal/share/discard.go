// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// closeFD may wait for as long as the file behind a descriptor likes: that of a socket
// for what it lingers for, that of a remote file for its server. It is a variable for
// tests.
var closeFD = unix.Close

// mostDiscards is how many calls of CloseAside may be closing descriptors at a time
// without their callers.
const mostDiscards = 64

var discards atomic.Int64

// CloseAside closes file descriptors that came from another program, which may have
// passed one whose closing takes forever: the caller does not wait. Only while many
// others are closing theirs, it does.
func CloseAside(fds []int) {
	if len(fds) == 0 {
		return
	}
	if discards.Add(1) > mostDiscards {
		discards.Add(-1)
		CloseAll(fds)
		return
	}
	go func() {
		defer discards.Add(-1)
		CloseAll(fds)
	}()
}
