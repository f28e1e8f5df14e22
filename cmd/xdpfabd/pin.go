// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/trust"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// Values of --pin that are no folders.
const (
	pinAuto = "auto"
	pinNone = "none"
)

// bpffs is where machines have their BPF file system.
const bpffs = "/sys/fs/bpf"

const endsWithDaemon = "resident regions end with this daemon, however it ends: there is no folder to keep them in; " +
	"see --pin"

// checkPin accepts the values of --pin.
func checkPin(s string) error {
	if s != pinAuto && s != pinNone && !filepath.IsAbs(s) {
		return wants(s, "auto, none, or the absolute path of a folder on a BPF file system")
	}
	return nil
}

// resides reports whether there is a resident region.
func (c Config) resides() bool {
	for _, r := range c.Regions {
		if r.Backing == backingResident {
			return true
		}
	}
	return false
}

// pinFolder returns the folder that resident regions are kept in, also those that a
// command adds; empty for none. By itself the daemon takes one of this network namespace
// and interface, if it can: below a folder that was made for it, which is all that a
// service or a container may see of the file system, or below one that it makes.
func (c Config) pinFolder(log *slog.Logger) string {
	folder, err := c.findPin()
	if err != nil && (c.resides() || c.Leave) {
		log.Warn(endsWithDaemon, "cause", err)
	}
	return folder
}

// mayLeave refuses to leave resident regions where there is no folder to keep them in.
func (c Config) mayLeave() error {
	_, err := c.findPin()
	if err == nil || !c.Leave || !c.resides() {
		return nil
	}
	return fmt.Errorf("leave = true, and there is no folder in which resident regions could outlive this daemon: %w; "+
		"name one with --pin, or want leave = false", err)
}

// findPin returns the folder of pinFolder, or why there is none.
func (c Config) findPin() (string, error) {
	switch {
	case c.Pin == pinNone, c.Transport == udpnode.UDP:
		return "", nil
	case c.Pin != pinAuto:
		return c.Pin, nil
	}
	root := ownRoot(bpffs)
	err := canPin(root)
	if errors.Is(err, fs.ErrNotExist) {
		err = canPin(bpffs)
	}
	if err != nil {
		return "", err
	}
	// bpffs takes no dots, and names of interfaces have no colons.
	return filepath.Join(root, fmt.Sprint(control.Namespace()), strings.ReplaceAll(c.Interface, ".", ":")), nil
}

// ownRoot returns the folder of a BPF file system below which this user's daemons keep
// resident regions. It is none that belongs to another user, who could replace what is in
// it: so a daemon that root starts by hand does not use the package's.
func ownRoot(at string) string {
	root := filepath.Join(at, "xdpfab")
	if err := trust.Folder(root); err == nil || errors.Is(err, fs.ErrNotExist) || trust.Folder(at) != nil {
		return root
	}
	return fmt.Sprintf("%s-%d", root, os.Geteuid())
}

// canPin reports an error if this process cannot make folders in one, or it is on no BPF
// file system.
func canPin(folder string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	if s.Type != unix.BPF_FS_MAGIC {
		return fmt.Errorf("no BPF file system at %s: `mount -t bpf bpf %s`", folder, bpffs)
	}
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	return nil
}
