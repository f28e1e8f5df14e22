// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/trust"
)

// MaxPath is the longest path of a socket, bytes: sun_path of unix(7) without its
// final zero.
const MaxPath = 107

const dirMode = 0o755

// waiting is how many clients may wait to be let in, if net.core.somaxconn is not less.
const waiting = 1<<16 - 1

// AskLimit bounds how long a live daemon is asked for its process id. It is longer than
// halt, so that one that is stopped is found out. It is a variable for tests, whose
// verdicts must not depend on how busy the machine is.
var AskLimit = 3 * time.Second

// burial is how long a process may hold its socket after it was killed: as long as the
// kernel takes to give back its memory.
const burial = 3 * time.Second

// pause waits a little, and reports whether the context lasts.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(20 * time.Millisecond):
		return true
	}
}

// LiveError describes which process serves a socket. It matches ErrLive.
type LiveError struct {
	Path string
	PID  int // 0 when it does not say
	Mute int // the process that has the socket and does not say; 0 when it is not known
	// Stopped says that the process is stopped, and how it goes on; nil if it is not.
	Stopped *SilentError
}

// Error names the process, if it is known, and what to do.
func (e *LiveError) Error() string {
	if e.Stopped != nil {
		return fmt.Sprintf("%v: %v", ErrLive, e.Stopped)
	}
	who := "by another process"
	switch {
	case e.PID != 0:
		who = fmt.Sprintf("by process %d", e.PID)
	case e.Mute != 0:
		who = fmt.Sprintf("by process %d (%s), which does not answer as xdpfabd does", e.Mute, process.Name(e.Mute))
	}
	return fmt.Sprintf("%v: %s %s; stop that process, or choose another path", ErrLive, e.Path, who)
}

// Unwrap makes the error match ErrLive.
func (e *LiveError) Unwrap() error { return ErrLive }

// anotherPath is the remedy where the path of a socket cannot be had.
const anotherPath = "choose another path (--control; clients then name it by --control or XDPFAB_CONTROL)"

// Listen makes the socket, and its directory, 0755, if that is missing and
// the directory above exists. The socket that a dead daemon left behind is replaced; if
// a process serves the socket, Listen returns a *LiveError. A directory in which other
// users can replace files is refused. Closing the listener removes the socket, and a
// directory that was made for it alone.
func Listen(ctx context.Context, path string, a Access) (net.Listener, error) {
	if len(path) > MaxPath {
		return nil, fmt.Errorf("control socket: path of %d bytes: want at most %d: %s", len(path), MaxPath, path)
	}
	dir := filepath.Dir(path)
	err := os.Mkdir(dir, dirMode)
	made := err == nil && dir != filepath.Dir(DefaultPath(""))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("control socket: %w; make the directory, or %s", err, anotherPath)
	}
	l, err := claim(ctx, path, a)
	for end := time.Now().Add(burial); ; l, err = claim(ctx, path, a) {
		live := new(LiveError)
		if !errors.As(err, &live) {
			break
		}
		live.ask() // without the lock: it may take a while
		if live.PID != 0 || time.Now().After(end) || !pause(ctx) {
			break
		}
	}
	switch {
	case made && err != nil:
		_ = os.Remove(dir)
	case made:
		l = &tidyListener{l, dir}
	}
	return l, err
}

// tidyListener removes the directory that was made for its socket.
type tidyListener struct {
	net.Listener
	dir string
}

// Close closes the listener. A directory that has other uses stays.
func (l *tidyListener) Close() error {
	err := l.Listener.Close()
	if l.dir != "" {
		_ = os.Remove(l.dir)
	}
	return err
}

// Leave returns a file descriptor of the socket of a listener that Listen or ListenerOf
// has returned, and whether its directory was made for it. The socket stays when the
// listener is closed: connections wait for the next one.
func Leave(l net.Listener) (fd int, made bool, err error) {
	tidy, made := l.(*tidyListener)
	if made {
		l = tidy.Listener
	}
	u, is := l.(*net.UnixListener)
	if !is {
		return -1, false, fmt.Errorf("control socket: a listener on %s: want one of this package", l.Addr())
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return -1, false, err
	}
	inner := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, inner); err != nil {
		return -1, false, fmt.Errorf("control socket: %w", err)
	}
	if u.SetUnlinkOnClose(false); made {
		tidy.dir = ""
	}
	return fd, made, nil
}

// ListenerOf returns a listener on a socket that another one has left. The file
// descriptor stays the caller's.
func ListenerOf(fd int, made bool) (net.Listener, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	f := os.NewFile(uintptr(own), "control socket")
	defer f.Close()
	// The kernel shows clients the process that called listen(2) last: see ProgramAt.
	if err := unix.Listen(own, waiting); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	u, is := l.(*net.UnixListener)
	if !is {
		return nil, errors.Join(fmt.Errorf("control socket: a listener on %s: want a Unix socket", l.Addr()), l.Close())
	}
	if u.SetUnlinkOnClose(true); made {
		return &tidyListener{u, filepath.Dir(u.Addr().String())}, nil
	}
	return u, nil
}

// claim does the work of Listen while the directory is locked.
func claim(ctx context.Context, path string, a Access) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := trust.Folder(dir); err != nil {
		return nil, fmt.Errorf("control socket: %w; %s", err, anotherPath)
	}
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: lock %s: %w; %s", dir, err, anotherPath)
	}
	defer unlock()
	if err := clear(path); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: narrow}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w; the directory must be writable", err)
	}
	if err := a.Apply(path); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	return l, nil
}

// narrow sets the permissions before bind(2) makes the file, which keeps them: until
// Access applies, only the process's own user can connect.
func narrow(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); e != nil {
		return e
	}
	return err
}

// clear removes the socket that a dead daemon left at path.
func clear(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("control socket: %s is there and is no socket: want a path where nothing is, or a socket "+
			"that a daemon has left; %s", path, anotherPath)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
		return &LiveError{Path: path}
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("control socket: %w; remove it, or choose another path", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("control socket: stale: %w", err)
	}
	return nil
}

// ask asks the daemon for its process id. One that does not answer is named by the
// kernel, which also knows whether it is stopped.
func (e *LiveError) ask() {
	c, err := Dial(e.Path)
	if err != nil {
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), AskLimit)
	defer cancel()
	s, err := c.Status(ctx)
	mute := new(SilentError)
	switch {
	case err == nil:
		e.PID = s.PID
	case errors.As(err, &mute) && mute.stopped:
		e.PID, e.Stopped = mute.PID, mute
	default:
		e.Mute = c.pid
	}
}
