// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Sysroot is a folder of unpacked packages, from which a guest of another architecture
// than the host's has its programs.
type Sysroot struct {
	dir  string
	arch *Arch
}

// The packages of a sysroot, for the programs in tools and those that NICs take.
const sysrootSuite = "trixie"

var sysrootPackages = []string{"busybox-static", "dash", "iproute2", "util-linux", "ethtool"}

// Sysroot finds the programs for guests of an architecture, which are downloaded and
// unpacked into the cache. It is nil for the host's, whose own programs do.
func (c *Cache) Sysroot(a *Arch) (*Sysroot, error) {
	if a.Native() {
		return nil, nil
	}
	r := &Sysroot{dir: filepath.Join(c.dir, "programs"+a.suffix()), arch: a}
	complete := func() error {
		for _, name := range append([]string{"busybox", "ethtool"}, tools...) {
			if _, err := r.find(name); err != nil {
				return err
			}
		}
		return nil
	}
	err := c.ensure(sysrootSuite, a, r.dir, complete, func(from *apt, into string) error {
		if err := from.fetchWhole(into, sysrootPackages...); err != nil {
			return fmt.Errorf("programs of Debian %s for %s: %w", sysrootSuite, a.Name, err)
		}
		return nil
	})
	if err == nil {
		err = complete()
	}
	return r, err
}

// find looks a program up.
func (r *Sysroot) find(name string) (string, error) {
	for _, dir := range []string{"usr/bin", "usr/sbin", "bin", "sbin"} {
		path := filepath.Join(r.dir, dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: no program %s for %s in %s: want the packages %s there",
		ErrHost, name, r.arch.Name, r.dir, strings.Join(sysrootPackages, ", "))
}

// libraries finds what the dynamic linker loads for a program, itself included: the path
// in the sysroot by that in the guest.
func (r *Sysroot) libraries(program string) (map[string]string, error) {
	found := map[string]string{}
	linker := ""
	for todo := []string{program}; len(todo) > 0; {
		path := todo[0]
		todo = todo[1:]
		names, by, err := needs(path)
		if err != nil {
			return nil, err
		}
		if by != "" { // the program itself: libraries only name the linker as one of them
			linker = by
			found[linker] = filepath.Join(r.dir, "usr", linker)
		}
		for _, name := range names {
			at := "/usr/lib/" + r.arch.triplet + "/" + name
			if found[at] != "" || strings.HasSuffix(linker, "/"+name) {
				continue
			}
			found[at] = filepath.Join(r.dir, at)
			todo = append(todo, found[at])
		}
	}
	return found, nil
}

// needs returns the libraries that a program or library names, and the dynamic linker of
// a program.
func needs(path string) (libraries []string, linker string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	if s := f.Section(".interp"); s != nil {
		b, err := s.Data()
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, err)
		}
		linker = strings.TrimRight(string(b), "\x00")
	}
	libraries, err = f.ImportedLibraries()
	return libraries, linker, err
}
