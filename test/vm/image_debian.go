// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// systemd is process 1 of a distribution.
const systemd = "/usr/lib/systemd/systemd"

// serving is the unit that makes a distribution talk to the host: when it is up.
const serving = `[Unit]
After=multi-user.target

[Service]
ExecStart=` + guest.ServeCommand + `
Environment=HOME=/root
LimitMEMLOCK=infinity
`

// addDebian adds a distribution: folders, files and links with their permissions.
func addDebian(a *archive, root string) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		perm := uint32(info.Mode().Perm())
		if info.Mode()&fs.ModeSticky != 0 {
			perm |= 0o1000
		}
		if info.Mode()&fs.ModeSetuid != 0 {
			perm |= 0o4000
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			a.add(rel, modeDir|perm, nil)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			a.symlink(rel, target)
		case 0:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			a.file(rel, perm, b)
		}
		return a.err
	})
	if err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	a.file("etc/systemd/system/vminit.service", 0o644, []byte(serving))
	a.symlink("etc/systemd/system/multi-user.target.wants/vminit.service", "../vminit.service")
	return a.err
}
