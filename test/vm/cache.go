// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Cache is a folder of things that are costly to get: kernels, and whether KVM
// works.
type Cache struct{ dir string }

// OpenCache opens the cache in a folder; an empty dir means the user's own.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = os.TempDir()
		}
		dir = filepath.Join(base, "xdpfab-vm")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &Cache{dir}, nil
}

// lock keeps other processes away from a part of the cache until the file is
// closed.
func (c *Cache) lock(part string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(c.dir, part+".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("cache: locking %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

// Kernel finds a kernel by name or by the path of its image. A name stands for the
// newest kernel of a Debian release (see Suites), which is downloaded and unpacked
// into the cache, once, or again if fresh is set. Nothing is installed.
func (c *Cache) Kernel(name, modules string, fresh bool) (*Kernel, error) {
	for _, s := range Suites {
		if s.Name == name {
			return c.named(s, fresh)
		}
	}
	if !strings.ContainsRune(name, '/') {
		if _, err := os.Stat(name); err != nil {
			var known []string
			for _, s := range Suites {
				known = append(known, s.Name)
			}
			return nil, fmt.Errorf("%w: %q is neither a file nor one of %s", ErrKernel, name, strings.Join(known, ", "))
		}
	}
	return OpenKernel(name, modules)
}

func (c *Cache) named(s Suite, fresh bool) (*Kernel, error) {
	l, err := c.lock("kernel-" + s.Debian)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	dir := filepath.Join(c.dir, "kernels", s.Debian)
	if !fresh {
		if k, err := unpacked(dir); err == nil {
			k.Name = s.Name
			return k, nil
		}
	}
	a, err := newAPT(filepath.Join(c.dir, "apt", s.Debian), s.Debian)
	if err != nil {
		return nil, err
	}
	// The folder is complete or missing: a kernel is unpacked next to it and
	// then moved.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	beside, err := os.MkdirTemp(filepath.Dir(dir), s.Debian+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(beside)
	if err := a.fetch(beside); err != nil {
		return nil, fmt.Errorf("%s of Debian %s: %w", s.Name, s.Debian, err)
	}
	if _, err := unpacked(beside); err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(beside, dir)); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	k, err := unpacked(dir)
	if err == nil {
		k.Name = s.Name
	}
	return k, err
}

// unpacked finds the kernel in a folder of unpacked packages.
func unpacked(dir string) (*Kernel, error) {
	for _, pattern := range []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz", "lib/modules/*/vmlinuz"} {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) == 1 {
			return OpenKernel(found[0], "")
		}
	}
	return nil, fmt.Errorf("%w: in %s there is not one image", ErrKernel, dir)
}
