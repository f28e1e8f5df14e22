// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// ErrHost is wrapped by the errors about things that the host lacks.
var ErrHost = errors.New("this machine lacks something")

// tools are the programs that tests run. They are copied with their
// libraries: busybox has programs of the same names, which can do too little,
// and its shell prefers its own to any other.
var tools = []string{"sh", "ip", "tc", "setpriv", "unshare"}

// Image describes what a test machine has in its memory; it has no disk.
type Image struct {
	Kernel  *Kernel
	Sysroot *Sysroot          // has the guest's programs; nil means the host
	Init    string            // program that is process 1; "" means vminit, built by Build
	Files   map[string]string // host's path by guest's, of files and folders
	Tools   []string          // programs of the host besides those of every machine
	Drivers []string          // kernel modules besides those of every machine, which the kernel must have
	// Debian is the folder of a distribution with systemd, which the guest then has in
	// place of busybox and tools. All in it belongs to root there.
	Debian string

	physical []string // guest.Config.Physical
}

// Build writes the initramfs to a file and returns its size in bytes.
func (m *Image) Build(path, init string) (size int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	a := newArchive(w)
	if m.Init != "" {
		init = m.Init
	}
	if err := m.fill(a, init); err != nil {
		return 0, err
	}
	return a.at, errors.Join(a.close(), w.Flush())
}

func (m *Image) fill(a *archive, init string) error {
	c := guest.Config{Physical: m.physical}
	var err error
	if m.Debian != "" {
		c.System = systemd
		err = addDebian(a, m.Debian)
	} else {
		err = m.fillOwn(a)
	}
	if err != nil {
		return err
	}
	if err := addFile(a, "init", init); err != nil {
		return err
	}
	modules, err := modulesOf(m.Kernel, m.Drivers)
	if err != nil {
		return err
	}
	for _, k := range modules {
		at := "lib/modules/" + m.Kernel.Release + "/" + k.name + ".ko"
		a.file(at, 0o644, k.data)
		c.Modules = append(c.Modules, "/"+at)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	a.file(guest.ConfigPath, 0o644, b)
	for at, from := range m.Files {
		if err := addTree(a, at, from); err != nil {
			return err
		}
	}
	return a.err
}

// fillOwn adds what every machine has that is no distribution.
func (m *Image) fillOwn(a *archive) error {
	for _, d := range []string{"proc", "sys", "dev", "run", "tmp", "root", "sbin", "var", "usr/bin", "usr/sbin"} {
		a.dir(d)
	}
	a.symlink("var/run", "/run")
	a.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"))
	a.file("etc/group", 0o644, []byte("root:x:0:\nusers:x:100:\nnogroup:x:65534:\n")) // users: the README's
	a.file("etc/hosts", 0o644, []byte("127.0.0.1 localhost\n"))
	return addTools(a, m.Sysroot, m.Tools)
}

func addFile(a *archive, at, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	a.file(at, uint32(info.Mode().Perm()), b)
	return a.err
}

// addTree adds a file, or a folder with all that is in it.
func addTree(a *archive, at, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("initramfs: %w", err)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			a.dir(filepath.Join(at, rel))
			return a.err
		}
		return addFile(a, filepath.Join(at, rel), path)
	})
}

// addTools adds busybox, the tools and more of them, with what they need to run, from the
// host or from a sysroot.
func addTools(a *archive, r *Sysroot, more []string) error {
	look, needed := find, librariesOf
	if r != nil {
		look, needed = r.find, r.libraries
	}
	box, err := look("busybox")
	if err != nil {
		return err
	}
	if libraries, err := needed(box); err != nil || len(libraries) > 0 {
		return fmt.Errorf("%w: %s is not a static program (%v): apt-get install busybox-static", ErrHost, box, err)
	}
	if err := addFile(a, "bin/busybox", box); err != nil {
		return err
	}
	for _, name := range slices.Concat(tools, more) {
		path, err := look(name)
		if err != nil {
			return err
		}
		if err := addFile(a, "bin/"+name, path); err != nil {
			return err
		}
		a.symlink("usr/bin/"+name, "/bin/"+name) // where tests expect it
		libraries, err := needed(path)
		if err != nil {
			return err
		}
		for at, from := range libraries {
			if a.made[strings.TrimPrefix(at, "/")] {
				continue
			}
			if err := addFile(a, at, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// find looks a program up, also in the folders of root's programs, which are not in
// every user's path.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: the program %s: apt-get install %s", ErrHost, name, packageOf[name])
}

// librariesOf finds what the dynamic linker loads for a program of the host, itself
// included, as the path on the host by that in the guest; nothing for a static program.
func librariesOf(path string) (map[string]string, error) {
	if dynamic, err := isDynamic(path); err != nil || !dynamic {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "LD_TRACE_LOADED_OBJECTS=1") // ld.so(8); what ldd does
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: the libraries of %s: %w", ErrHost, path, err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		for word := range strings.FieldsSeq(line) {
			if strings.HasPrefix(word, "/") {
				found[word] = word
			}
		}
	}
	return found, nil
}

// isDynamic reports whether a program needs a dynamic linker.
func isDynamic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true, nil
		}
	}
	return false, nil
}
