// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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

// CheckKernel refuses what is neither a kernel's name nor the path of a file.
func CheckKernel(name string) error {
	_, err := suiteOf(name)
	return err
}

// suiteOf returns the suite that a kernel's name stands for, nil for the path of a file.
func suiteOf(name string) (*Suite, error) {
	suite, known := named(slices.Concat(Suites, []Suite{FullKernel}), name, func(s Suite) string { return s.Name })
	if suite != nil {
		return suite, nil
	}
	if _, err := os.Stat(name); err != nil {
		return nil, fmt.Errorf("%w: %q is neither a file nor one of %s: %w", ErrKernel, name, known, err)
	}
	return nil, nil
}

// Kernel finds a kernel for an architecture by name or by the path of its image. A name
// stands for the newest kernel of a Debian release (see Suites), which is downloaded and
// unpacked into the cache, once, or again if fresh is set. Nothing is installed.
func (c *Cache) Kernel(name string, arch *Arch, modules string, fresh bool) (*Kernel, error) {
	s, err := suiteOf(name)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return c.named(*s, arch, fresh)
	}
	k, err := OpenKernel(name, modules)
	if err == nil && k.Arch != arch {
		return nil, fmt.Errorf("%w: %s is for %s: want one for %s, or -arch %s", ErrKernel, name, k.Arch.Name,
			arch.Name, k.Arch.Name)
	}
	return k, err
}

func (c *Cache) named(s Suite, arch *Arch, fresh bool) (*Kernel, error) {
	folder := s.Debian
	if s.Package != cloudPackage {
		folder = s.Name
	}
	dir := filepath.Join(c.dir, "kernels", folder+arch.suffix())
	present := func() error {
		if fresh {
			return fmt.Errorf("%w: the newest is wanted", ErrKernel)
		}
		_, err := unpacked(dir)
		return err
	}
	err := c.ensure(s.Debian, arch, dir, present, func(a *apt, into string) error {
		if err := a.fetchKernel(s.Package+arch.Name, into); err != nil {
			return fmt.Errorf("%s of Debian %s: %w", s.Name, s.Debian, err)
		}
		_, err := unpacked(into)
		return err
	})
	if err != nil {
		return nil, err
	}
	k, err := unpacked(dir)
	if err == nil {
		k.Name = s.Name
	}
	return k, err
}

// ensure fills a folder of the cache from a Debian suite's packages, unless present
// reports that it is there. The folder is complete or missing: ensure fills a temporary
// folder in the same directory, and then renames it.
func (c *Cache) ensure(suite string, arch *Arch, dir string, present func() error,
	fill func(a *apt, into string) error) error {
	l, err := c.lock("kernel-" + suite + arch.suffix()) // which is that of apt's lists, too
	if err != nil {
		return err
	}
	defer l.Close()
	if present() == nil {
		return nil
	}
	a, err := newAPT(filepath.Join(c.dir, "apt", suite+arch.suffix()), suite, arch.Name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	if err := fill(a, staging); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(staging, dir)); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
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
