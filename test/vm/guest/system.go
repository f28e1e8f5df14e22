// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// inMachine reports whether this is a test machine whose process 1 is another program.
func inMachine() bool {
	_, err := os.Stat(ConfigPath)
	return err == nil && os.Getppid() == 1
}

// become makes another program process 1. It makes the mounts that it expects itself.
//
// The root of an initramfs cannot be left by pivot_root(2), with which services get roots
// of their own. So it is mounted over itself first, as switch_root(8) does with another
// one.
func become(program string) error {
	err := errors.Join(os.MkdirAll("/mnt", 0o755), unix.Mount("/", "/mnt", "", unix.MS_BIND, ""), unix.Chdir("/mnt"),
		unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), unix.Chdir("/"))
	if err == nil {
		err = unix.Exec(program, []string{program}, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"})
	}
	return fmt.Errorf("becoming %s: %w", program, err)
}
