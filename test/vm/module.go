// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrModules is wrapped by the errors of kernel modules that cannot be used.
var ErrModules = errors.New("kernel modules cannot be used")

// wanted are the modules for a test machine, without those that they depend on.
// Modules that a kernel has built in are not loaded. If a kernel has a module in
// neither form, the test that needs it refuses the kernel.
var wanted = []string{
	"virtio_pci", "virtio_console", "virtio_net", "veth", "8021q", "bridge", "sch_netem", "ipip", "dummy",
	"xsk_diag", "bonding", "macvlan", "ipvlan", "vrf", "team", "team_mode_activebackup",
}

// required are the modules without which no test makes sense.
var required = []string{"virtio_pci", "virtio_console", "veth"}

// moduleFile is a module of the image.
type moduleFile struct {
	name string
	data []byte
}

// modulesOf reads the wanted modules and the given drivers of a kernel, and those that
// they depend on, in an order in which they can be loaded.
func modulesOf(k *Kernel, drivers []string) (list []moduleFile, err error) {
	r := &moduleReader{paths: map[string]string{}, seen: map[string]bool{}, builtin: map[string]bool{}}
	if err := r.index(k.Modules); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModules, err)
	}
	for _, name := range slices.Concat(wanted, drivers) {
		if err := r.add(name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrModules, err)
		}
	}
	for _, name := range slices.Concat(required, drivers) {
		if !r.builtin[name] && !slices.ContainsFunc(r.list, func(m moduleFile) bool { return m.name == name }) {
			return nil,
				fmt.Errorf(
					"%w: %s has no %s, and the kernel has it not built in; take another kernel or the right -modules",
					ErrModules, k.Modules, name)
		}
	}
	return r.list, nil
}

type moduleReader struct {
	paths   map[string]string // by name
	builtin map[string]bool
	seen    map[string]bool
	list    []moduleFile
}

// normal returns a module's name as the kernel writes it.
func normal(name string) string { return strings.ReplaceAll(name, "-", "_") }

// index finds all modules, and those built in.
func (r *moduleReader) index(dir string) error {
	err := filepath.WalkDir(filepath.Join(dir, "kernel"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name, _, ok := strings.Cut(d.Name(), ".ko"); ok && !d.IsDir() {
			r.paths[normal(name)] = path
		}
		return nil
	})
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return fmt.Errorf("what is built into the kernel: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(filepath.Base(strings.TrimSpace(line)), ".ko")
		r.builtin[normal(name)] = true
	}
	return nil
}

// add reads a module after those that it depends on.
func (r *moduleReader) add(name string) error {
	name = normal(name)
	path, ok := r.paths[name]
	if !ok || r.seen[name] {
		return nil
	}
	r.seen[name] = true
	data, err := readModule(path)
	if err != nil {
		return err
	}
	needs, err := dependencies(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, n := range needs {
		if err := r.add(n); err != nil {
			return err
		}
	}
	r.list = append(r.list, moduleFile{name, data})
	return nil
}

// unpackers turn a compressed module into a plain one.
var unpackers = map[string][]string{".xz": {"xz", "-dc"}, ".zst": {"zstd", "-dcq"}, ".gz": {"gzip", "-dc"}}

func readModule(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	unpack := unpackers[filepath.Ext(path)]
	if err != nil || unpack == nil {
		return data, err
	}
	if _, err := exec.LookPath(unpack[0]); err != nil {
		return nil, fmt.Errorf("%s is compressed and %s is missing: apt-get install %s", path, unpack[0],
			packageOf[unpack[0]])
	}
	cmd := exec.Command(unpack[0], unpack[1:]...)
	var complaint bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), &complaint
	plain, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w: %s", path, err, strings.TrimSpace(complaint.String()))
	}
	return plain, nil
}

// dependencies reads the "depends=" of a module's .modinfo.
func dependencies(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("not a kernel module: %w", err)
	}
	s := f.Section(".modinfo")
	if s == nil {
		return nil, errors.New("not a kernel module: it has no .modinfo")
	}
	info, err := s.Data()
	if err != nil {
		return nil, err
	}
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
