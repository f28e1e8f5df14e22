// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestPermissions(t *testing.T) {
	path := start(t, func() (Status, error) { return sample, nil })
	for p, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o660, filepath.Dir(path): fs.ModeDir | 0o755} {
		info, err := os.Stat(p)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", p, info.Mode(), err, want)
		}
	}
}

// A process that was killed has its socket until the kernel is done with it. The next one
// waits for that.
func TestDyingSocketIsAwaited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	dying, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for { // the first question finds out that it says nothing
			c, err := dying.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			_ = dying.Close()
		}
	}()
	l, err := Listen(t.Context(), path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestLiveSocketIsLeftAlone(t *testing.T) {
	defer func(was time.Duration) { AskLimit = was }(AskLimit)
	AskLimit = testnet.Patience
	path := start(t, func() (Status, error) { return sample, nil })
	_, err := Listen(t.Context(), path, Access{})
	var live *LiveError
	if !errors.Is(err, ErrLive) || !errors.As(err, &live) || live.PID != sample.PID {
		t.Errorf("second server: %v; want ErrLive with process %d", err, sample.PID)
	}
	if s, err := dial(t, path).Status(ask(t)); err != nil || s.PID != sample.PID {
		t.Errorf("first server after the attempt: %v, %d", err, s.PID)
	}
}

// A process that has the socket and is no daemon is named, in one question.
func TestMuteSocketIsNamed(t *testing.T) {
	defer func(was time.Duration) { AskLimit = was }(AskLimit)
	AskLimit = 10 * time.Millisecond
	path := filepath.Join(t.TempDir(), "x.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := &LiveError{Path: path}
	if e.ask(); e.PID != 0 || e.Mute != os.Getpid() || !strings.Contains(e.Error(), fmt.Sprintf("by process %d (", os.Getpid())) {
		t.Errorf("%v", e)
	}
	for _, ask := range []func() error{
		func() error { _, err := AskToTakeOver(t.Context(), path); return err },
		func() error {
			c := dial(t, path)
			c.Patience = AskLimit
			_, err := c.Status(t.Context())
			return err
		},
	} {
		mute := new(SilentError)
		err := ask()
		if !errors.As(err, &mute) {
			t.Fatalf("%v, want that it is silent", err)
		}
		mute.Fixed = true
		if text := err.Error(); strings.Contains(text, "--timeout") || !strings.Contains(text, fmt.Sprintf("process %d, ", os.Getpid())) {
			t.Error(text)
		}
	}
}

// dead leaves the socket of a process that was killed.
func dead(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	dead(t, path)
	if _, err := Dial(path); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("Dial to a dead socket: %v; want ErrNoDaemon", err)
	}
	l, err := Listen(t.Context(), path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// Of many processes that find the same dead socket, one gets it, and keeps it.
func TestStaleSocketRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	dead(t, path)
	var wg sync.WaitGroup
	got := make(chan net.Listener, 8)
	for range cap(got) {
		wg.Go(func() {
			l, err := Listen(t.Context(), path, Access{})
			switch {
			case err == nil:
				got <- l
			case !errors.Is(err, ErrLive):
				t.Errorf("Listen: %v; want ErrLive", err)
			}
		})
	}
	wg.Wait()
	close(got)
	if len(got) != 1 {
		t.Errorf("%d listeners, want 1", len(got))
	}
	for l := range got {
		_ = l.Close()
	}
}

// One directory is made for the socket, and is removed with it; a whole path is
// not made.
func TestListenMakesOneDirectory(t *testing.T) {
	dir := t.TempDir()
	l, err := Listen(t.Context(), filepath.Join(dir, "run", "x.sock"), Access{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l, err := Listen(t.Context(), filepath.Join(dir, "a", "b", "x.sock"), Access{}); err == nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v; want an error about the missing directory", l, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a file":      {file, "is no socket"},
		"a long path": {filepath.Join(dir, strings.Repeat("x", 108)), "at most 107"},
		"no folder":   {filepath.Join(file, "x.sock"), "choose another path"},
	} {
		if l, err := Listen(t.Context(), c.path, Access{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want an error with %q", name, l, err, c.want)
		}
	}
	if b, _ := os.ReadFile(file); string(b) != "precious" {
		t.Error("the file was touched")
	}
}
