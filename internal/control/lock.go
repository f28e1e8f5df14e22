// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/process"
)

// lockName is the file in a folder of sockets that is locked. The folder itself would not
// do: any user may lock what he can open.
const lockName = ".xdpfab.lock"

// lockPatience is how long the folder may stay locked: others hold the lock for
// moments. It is a variable for tests.
var lockPatience = 5 * time.Second

const lockPoll = 5 * time.Millisecond

// lockDir keeps out other processes that want to listen in this directory: between
// finding a dead socket and replacing it no other process may do the same. Unlocking
// removes the file.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	path := filepath.Join(dir, lockName)
	for end := time.Now().Add(lockPatience); ; {
		f, holder, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return func() {
				_ = os.Remove(path)
				_ = f.Close()
			}, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%s holds %s: stop it", holder, path)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// tryLock locks the file, or says who holds the lock. It returns neither if the file has
// just been removed by its holder.
func tryLock(path string) (f *os.File, holder string, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, "", err
	}
	var own, there unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &own); err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	if int(own.Uid) != os.Geteuid() || own.Mode != unix.S_IFREG|0o600 {
		_ = f.Close()
		return nil, "",
			fmt.Errorf("%s belongs to user %d and has mode %o: want a file of user %d alone, mode 600; remove it",
				path, own.Uid, own.Mode&0o7777, os.Geteuid())
	}
	switch err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		_ = f.Close()
		return nil, holderOf(&own), nil
	case err != nil:
		return nil, "", errors.Join(err, f.Close())
	}
	if err = unix.Lstat(path, &there); err != nil || there.Ino != own.Ino || there.Dev != own.Dev {
		_ = f.Close()
		return nil, "another process", nil
	}
	return f, "", nil
}

// holderOf names the process that has locked a file, if the kernel shows it.
func holderOf(file *unix.Stat_t) string {
	if pid := process.LockHolder(file); pid != 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}
