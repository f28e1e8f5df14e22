// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Emulator is a QEMU.
type Emulator struct {
	program string
	args    []string // before those of the machine
	env     []string // added to that of this process
}

// The newer QEMU, for devices that the host's lacks. Its package is unpacked with all
// that it depends on, so that it runs on any host.
const (
	emulatorSuite = "trixie"
	libraries     = "usr/lib/x86_64-linux-gnu"
)

// Emulator finds a QEMU for an architecture that has a device: the host's, or that of a
// newer Debian release, which is downloaded and unpacked into the cache. Nothing is
// installed.
func (c *Cache) Emulator(a *Arch, device string) (*Emulator, error) {
	if path, err := find(a.qemu); err == nil {
		e := &Emulator{program: path}
		if e.has(device) == nil {
			return e, nil
		}
	}
	dir := filepath.Join(c.dir, "qemu"+a.suffix())
	e := &Emulator{
		program: filepath.Join(dir, libraries, "ld-linux-x86-64.so.2"),
		args: []string{"--library-path", filepath.Join(dir, libraries), filepath.Join(dir, "usr/bin", a.qemu),
			"-L", filepath.Join(dir, "usr/share/seabios"), "-L", filepath.Join(dir, "usr/share/qemu")},
		env: []string{"QEMU_MODULE_DIR=" + filepath.Join(dir, libraries, "qemu")},
	}
	err := c.ensure(emulatorSuite, AMD64, dir, func() error { return e.has(device) },
		func(from *apt, into string) error {
			if err := from.fetchWhole(into, a.packages); err != nil {
				return fmt.Errorf("QEMU of Debian %s: %w", emulatorSuite, err)
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return e, e.has(device)
}

// has checks that the emulator runs and has a device. Its exit code does not tell.
func (e *Emulator) has(device string) error {
	// Some kinds of machine have no default, so one is named that is everywhere.
	out, err := e.command("-machine", "none", "-device", device+",help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: a QEMU with the device %s: %s: %w: %s", ErrHost, device, e.program, err,
			tail(string(out), 5))
	}
	if !strings.HasPrefix(string(out), device+" options:") {
		return fmt.Errorf("%w: a QEMU with the device %s: %s: %s", ErrHost, device, e.program, tail(string(out), 5))
	}
	return nil
}

// command prepares a call of the emulator.
func (e *Emulator) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.program, append(e.args[:len(e.args):len(e.args)], args...)...)
	cmd.Env = append(cmd.Environ(), e.env...)
	return cmd
}
