// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/trust"
)

// Folder is a folder of a BPF file system where the state of an interface is pinned, and
// the steering program with it. It belongs to one process at a time, by a lock that ends
// with the process.
type Folder struct {
	path string
	lock *os.File
}

// OpenFolder makes a folder this process's, and makes it if need be.
//
// The error matches ErrNoFileSystem if the path is not on a BPF file system, ErrOwned if
// another process has the folder, ErrVersion if the state of another version is there,
// and fs.ErrPermission if this process may not write there. A folder that other users can
// replace or lock is refused.
func OpenFolder(path string) (*Folder, error) {
	if err := CheckFolder(path); err != nil { // before anything is made there
		return nil, err
	}
	for end := time.Now().Add(lockPatience); ; {
		f, err := lockFolder(path)
		if errors.Is(err, ErrOwned) && time.Now().Before(end) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("resident: %s: %w", path, err)
		}
		here, err1 := f.lock.Stat()
		there, err2 := os.Stat(path)
		if err1 != nil || err2 != nil || !os.SameFile(here, there) {
			_ = f.lock.Close() // its owner has just removed it
			continue
		}
		if err := errors.Join(f.private(here), f.check()); err != nil {
			return nil, errors.Join(err, f.lock.Close())
		}
		return f, nil
	}
}

// CheckFolder reports an error for which OpenFolder would refuse a path, and makes
// nothing.
func CheckFolder(path string) error {
	err := onBPF(path)
	if err == nil {
		err = notRoot(filepath.Clean(path))
	}
	if err != nil {
		return err
	}
	if err := trust.Folder(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("resident: %w", err)
	}
	return nil
}

// notRoot refuses the root of a BPF file system, which other programs use.
func notRoot(path string) error {
	if _, err := os.Lstat(path); err == nil && onBPF(filepath.Dir(path)) != nil {
		return fmt.Errorf("%w: %s is the root of a BPF file system, which is for all programs: want a folder below "+
			"it, such as %s", ErrConfig, path, filepath.Join(path, "xdpfab", "eth0"))
	}
	return nil
}

// FindFolder is OpenFolder if the folder is there, and returns nil otherwise. What this
// process may not look at is not there for it.
func FindFolder(path string) (*Folder, error) {
	err := onBPF(path)
	if err == nil {
		_, err = os.Lstat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return OpenFolder(path)
}

// private returns nil if no other user can replace the folder, or lock it.
func (f *Folder) private(info os.FileInfo) error {
	if m := info.Mode().Perm(); m&0o077 != 0 {
		return fmt.Errorf("resident: %s has mode %04o, so other users can lock it: want 0700, `chmod 700 %s`",
			f.path, m, f.path)
	}
	if err := trust.Folder(f.path); err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	return nil
}

// lockPatience is how long a folder may seem taken: List looks at folders, too, and the
// end of a process takes its time.
const lockPatience = time.Second

// onBPF looks whether a path, whose end may not exist yet, is on a BPF file system.
func onBPF(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%w: %q is no absolute path: want the folder as `xdpfab resident list` shows it", ErrConfig,
			path)
	}
	path = filepath.Clean(path)
	var s unix.Statfs_t
	for at := path; ; at = filepath.Dir(at) {
		switch err := unix.Statfs(at, &s); {
		case err == nil && s.Type == unix.BPF_FS_MAGIC:
			if missing := strings.TrimPrefix(path, at); strings.Contains(missing, ".") {
				return fmt.Errorf("%w: %s: a BPF file system takes no names with dots: want others, such as %s",
					ErrConfig, path, at+strings.ReplaceAll(missing, ".", "-"))
			}
			return nil
		case err == nil:
			return fmt.Errorf("%s: %w", path, ErrNoFileSystem)
		case !errors.Is(err, fs.ErrNotExist) && err != unix.EPERM || at == "/": // EPERM: of a name with a dot
			return fmt.Errorf("resident: %s: %w", path, err)
		}
	}
}

func lockFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ownedError{holderOf(lock)}
		}
		return nil, errors.Join(err, lock.Close())
	}
	return &Folder{path: path, lock: lock}, nil
}

// ownedError is an ErrOwned that names the process, if the kernel shows it.
type ownedError struct{ pid int }

// Error has the remedy.
func (e ownedError) Error() string {
	if e.pid == 0 {
		return ErrOwned.Error()
	}
	return fmt.Sprintf("process %d (%s) has the folder; stop it, or name another folder", e.pid, process.Name(e.pid))
}

func (ownedError) Unwrap() error { return ErrOwned }

// holderOf returns the process that has locked a folder; 0 if it is not known.
func holderOf(folder *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(folder.Fd()), &st) != nil {
		return 0
	}
	return process.LockHolder(&st)
}

// check finds the state of another version.
func (f *Folder) check() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	for _, e := range entries {
		if e.Name() != version {
			return fmt.Errorf("resident: %s has %s: %w", f.path, e.Name(), ErrVersion)
		}
	}
	return nil
}

// State is where the state is pinned.
func (f *Folder) State() string { return filepath.Join(f.path, version) }

// Whole reports whether a process left a state that is still served.
func (f *Folder) Whole() bool { return bpf.Pinned(f.State()) }

// Close gives the folder to the next process, with what is in it.
func (f *Folder) Close() error { return f.lock.Close() }

// Remove takes everything out of the folder, of any version, and ends it: a program that
// outlived its process is detached. The folder has still to be closed.
func (f *Folder) Remove() error {
	if err := errors.Join(f.empty(), os.Remove(f.path)); err != nil {
		return fmt.Errorf("resident: removing what is pinned in %s: %w", f.path, err)
	}
	return nil
}

// empty takes everything out of the folder.
func (f *Folder) empty() error {
	entries, err := os.ReadDir(f.path)
	errs := []error{err}
	for _, e := range entries {
		at := filepath.Join(f.path, e.Name())
		errs = append(errs, bpf.DetachPinned(at), os.RemoveAll(at))
	}
	return errors.Join(errs...)
}

// stateAlone reports an error unless there are states, of any version, and nothing else.
func (f *Folder) stateAlone() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	for _, e := range entries {
		if !isState(filepath.Join(f.path, e.Name())) {
			return fmt.Errorf("%w: %s has %s, which is no state of resident regions; want a folder that `xdpfab "+
				"resident list` shows", ErrConfig, f.path, e.Name())
		}
	}
	return nil
}
