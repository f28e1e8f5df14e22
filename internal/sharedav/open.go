// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sharedav

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is where the files are: memory that all processes of a node see, until it is
// switched off.
const Dir = "/dev/shm"

// MaxName is the longest name of a table, bytes.
const MaxName = 64

// CheckName refuses names that cannot be part of a file's name.
func CheckName(name string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	if len(name) == 0 || len(name) > MaxName || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("name %q: want 1 to %d letters, digits, dots, dashes and underscores", name, MaxName)
	}
	return nil
}

// Open opens the table of a name, and makes it if no process uses it. With readOnly it
// must be in use, and cannot be changed. ctx bounds the time that it waits for a process
// that is just making or removing it.
func Open(ctx context.Context, name string, readOnly bool) (*Table, error) {
	return open(ctx, Dir, name, readOnly)
}

// tries is how often the file may be another one, or be half made, by the time it is
// open.
const tries = 100

func open(ctx context.Context, dir, name string, readOnly bool) (*Table, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fmt.Sprintf("xdpfab-av-%d-%s", os.Geteuid(), name))
	for range tries {
		t, err := once(ctx, path, readOnly)
		if t != nil || err != nil {
			return t, err
		}
	}
	return nil, fmt.Errorf("%s: it is made and removed all the time", path)
}

// once opens the file and becomes a user of it. It returns nil twice if the file was
// removed, or left half made, meanwhile.
func once(ctx context.Context, path string, readOnly bool) (*Table, error) {
	flags := os.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW
	if !readOnly {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if readOnly && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNone, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	t := &Table{f: f, path: path, readOnly: readOnly}
	if err := t.own(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	again, err := t.join(ctx)
	if again || err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// own refuses files that are not the user's alone.
func (t *Table) own() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(t.f.Fd()), &st); err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf(
			"%s is of user %d with mode %o: want a file of user %d that is nobody else's (mode 600); remove it",
			t.path, st.Uid, st.Mode, os.Geteuid())
	}
	return nil
}

// join makes t one of the users of the file. The first one makes the table.
func (t *Table) join(ctx context.Context) (again bool, err error) {
	used, err := t.lock(unix.F_WRLCK, usersByte)
	if err != nil {
		return false, fmt.Errorf("%s: %w", t.path, err)
	}
	if !used {
		return t.first()
	}
	if err := t.wait(ctx, unix.F_RDLCK, usersByte); err != nil {
		return false, fmt.Errorf("%s: waiting for the process that makes or removes it: %w", t.path, err)
	}
	if t.unlinked() {
		return true, nil
	}
	if st, err := t.f.Stat(); err == nil && st.Size() == 0 {
		return true, nil // its maker died
	}
	_, err = t.Len()
	return false, err
}

// first begins the table, whose only user is t. What a process that died has left
// is replaced; a file that was never a table is not touched.
func (t *Table) first() (again bool, err error) {
	if t.unlinked() {
		return true, nil
	}
	if st, err := t.f.Stat(); err != nil || st.Size() > 0 {
		if _, bad := t.Len(); err != nil || bad != nil {
			return false, errors.Join(err, bad)
		}
	}
	if t.readOnly {
		return false, errors.Join(fmt.Errorf("%w: %s was left by a process that has died", ErrNone, t.path),
			os.Remove(t.path))
	}
	head := make([]byte, headLen)
	copy(head, magic)
	if err := t.f.Truncate(0); err != nil {
		return false, fmt.Errorf("%w", err)
	}
	if _, err := t.f.WriteAt(head, 0); err != nil {
		return false, fmt.Errorf("%w", err)
	}
	_, err = t.lock(unix.F_RDLCK, usersByte)
	return false, err
}

// unlinked reports whether the file is no longer the one at its path.
func (t *Table) unlinked() bool {
	here, err := t.f.Stat()
	there, err2 := os.Stat(t.path)
	return err != nil || err2 != nil || !os.SameFile(here, there)
}

// closeTimeout is how long Close waits for a writer before it leaves the file to the next
// one that creates the table.
const closeTimeout = time.Second

// Close ends the use of the table. The last user removes it.
func (t *Table) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var err error
	// Of two that leave at the same time neither would be the last: they take turns.
	if t.wait(ctx, unix.F_WRLCK, writersByte) == nil {
		if used, failed := t.lock(unix.F_WRLCK, usersByte); failed == nil && !used && !t.unlinked() {
			err = os.Remove(t.path)
		}
	}
	return errors.Join(err, t.f.Close())
}
