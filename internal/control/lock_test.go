// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Any user may lock a folder that he can read. That keeps no daemon from starting.
func TestListenInALockedFolder(t *testing.T) {
	dir := t.TempDir()
	lock, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), filepath.Join(dir, "x.sock"), Access{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// holdLock locks a folder of sockets as another daemon does.
func holdLock(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	unlock, err := lockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

// Listen does not wait for another daemon for ever, and names it.
func TestListenNamesTheHolder(t *testing.T) {
	defer func(was time.Duration) { lockPatience = was }(lockPatience)
	lockPatience = 10 * time.Millisecond
	dir := t.TempDir()
	defer holdLock(t, dir)()
	_, err := Listen(t.Context(), filepath.Join(dir, "x.sock"), Access{})
	if want := fmt.Sprintf("process %d holds", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Listen: %v; want an error with %q", err, want)
	}
}

// A daemon that waits for another one can be told to end.
func TestListenEndsWithItsContext(t *testing.T) {
	defer func(was time.Duration) { lockPatience = was }(lockPatience)
	lockPatience = time.Hour
	dir := t.TempDir()
	defer holdLock(t, dir)()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := Listen(ctx, filepath.Join(dir, "x.sock"), Access{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Listen: %v; want context.Canceled", err)
	}
}

// A lock file of another user, or one that others can open, is none.
func TestListenRefusesALockOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), filepath.Join(dir, "x.sock"), Access{}); err == nil || !strings.Contains(err.Error(), "mode 644") {
		t.Errorf("Listen: %v; want an error with the mode", err)
	}
}
