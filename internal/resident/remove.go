// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/trust"
)

// RemoveFolder removes what a process left that died. The error matches ErrOwned if it
// lives, fs.ErrNotExist if there is no such folder, and ErrConfig if there is something
// else than a state: the folder may be the whole machine's.
//
// Root can remove what a daemon with a user of its own left.
func RemoveFolder(path string) error {
	if err := onBPF(path); err != nil {
		if _, absent := os.Lstat(path); absent != nil && errors.Is(err, ErrNoFileSystem) {
			err = fmt.Errorf("resident: %w", absent)
		}
		return err
	}
	if uid, is := another(path); is && os.Geteuid() == 0 {
		return removeAs(uid, path)
	}
	if err := trust.Folder(path); err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	f, err := lockFolder(path)
	if err != nil {
		return fmt.Errorf("resident: %s: %w", path, err)
	}
	if err := f.stateAlone(); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Remove(), f.Close())
}

// another returns the user to whom a folder belongs, if that is neither root nor this
// process's.
func another(path string) (uid int, is bool) {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, false
	}
	return int(s.Uid), s.Uid != 0 && int(s.Uid) != os.Geteuid()
}

// removeAs removes the state in a folder of another user, who could replace whatever is
// in it by links to what is not his while root works there. So root holds the folder, and
// reaches for files with that user's rights alone.
func removeAs(uid int, path string) error {
	if err := trust.FolderOf(path, uid); err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("resident: %s: %w", path, err)
	}
	defer unix.Close(fd)
	held := &Folder{path: fmt.Sprintf("/proc/self/fd/%d", fd)}
	err = withRightsOf(uid, func() error {
		own, err := lockFolder(held.path)
		if err != nil {
			return err
		}
		held = own
		if err := held.stateAlone(); err != nil {
			return errors.Join(err, held.Close())
		}
		return errors.Join(held.empty(), held.Close())
	})
	if err == nil {
		err = unix.Rmdir(path) // nothing but a folder that is empty, whatever the path leads to by now
	}
	if err != nil {
		return fmt.Errorf("resident: removing what user %d left in %s: %w", uid, path, err)
	}
	return nil
}

// nobodysGroup is a group that nothing belongs to, by convention.
const nobodysGroup = 65534

// withRightsOf calls f on a thread that accesses files as a user who is in no group:
// without root's right to pass over permissions, and without what root's groups may do.
// The thread keeps root's other rights.
func withRightsOf(uid int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its goroutine
		err := reachAs(uid)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// reachAs has the calling thread access files as a user. setfsuid(2) and setfsgid(2)
// report no error, so it looks at what they have set.
func reachAs(uid int) error {
	if err := unix.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	_ = unix.Setfsgid(nobodysGroup)
	if now, _ := unix.SetfsgidRetGid(-1); now != nobodysGroup {
		return fmt.Errorf("setfsgid(%d): the thread has group %d", nobodysGroup, now)
	}
	_ = unix.Setfsuid(uid)
	if now, _ := unix.SetfsuidRetUid(-1); now != uid {
		return fmt.Errorf("setfsuid(%d): the thread has user %d", uid, now)
	}
	return nil
}
