// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/trust"
)

// DefaultMode are the permissions of a socket.
const DefaultMode fs.FileMode = 0o660

// ErrGroup means that the group of a socket cannot be set. Another path would not help.
var ErrGroup = errors.New("it cannot be given to its group")

// Access describes who may connect to a socket.
type Access struct {
	Mode  fs.FileMode // permissions; 0 means DefaultMode
	Group *int        // that the socket belongs to; nil means the process's
}

// Apply gives the socket at path to its group first, and only then its permissions, so
// that no other group has them in between. Nothing but a socket of this process's user or
// of root is changed, and no link is followed: else a user who can replace the socket
// would get any file.
func (a Access) Apply(path string) error {
	if err := trust.Folder(filepath.Dir(path)); err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if s.Mode&unix.S_IFMT != unix.S_IFSOCK || s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf(
			"%s is no socket of user %d or root: another user has replaced it; remove it, or choose another path", path,
			os.Geteuid())
	}
	if a.Group != nil {
		if err := unix.Fchownat(fd, "", -1, *a.Group, unix.AT_EMPTY_PATH); err != nil {
			return fmt.Errorf("%w: chown %s: %w: this process is not in the group, and that takes CAP_CHOWN: have it "+
				"be there (SupplementaryGroups= of the unit), or name another group", ErrGroup, path, err)
		}
	}
	// fchmod(2) refuses a descriptor of O_PATH.
	if err := os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), cmp.Or(a.Mode, DefaultMode)); err != nil {
		return fmt.Errorf("chmod %s: %w", path, errors.Unwrap(err))
	}
	return nil
}
