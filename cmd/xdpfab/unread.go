// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// whileRead ends a command that waits as soon as nobody reads its output any more: it may
// have nothing to write for long, and would keep the interface until then. The function
// that it returns ends this watch.
func (a *app) whileRead() (stop func()) {
	none := func() {}
	out, is := a.results.to.(*os.File)
	if !is {
		return none
	}
	s, err := out.Stat()
	if err != nil || s.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return none
	}
	var ends [2]int // of a pipe whose closing ends the poll
	conn, err := out.SyscallConn()
	if err != nil || unix.Pipe2(ends[:], unix.O_CLOEXEC) != nil {
		return none
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = conn.Control(func(fd uintptr) { // it fails once stdout is closed
			if readerGone(int32(fd), int32(ends[0])) {
				a.results.unread()
			}
		})
	}()
	return func() {
		_ = unix.Close(ends[1])
		<-over
		_ = unix.Close(ends[0])
	}
}

// readerGone waits until a pipe has no reader any more, or until the writer of another
// one has gone.
func readerGone(pipe, stop int32) bool {
	both := []unix.PollFd{{Fd: pipe}, {Fd: stop}} // errors and hang-ups are reported always
	for {
		_, err := unix.Poll(both, -1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && both[0].Revents != 0
		}
	}
}
