// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// ErrMemory is wrapped by the errors about too little memory, on the host or in
// the guest.
var ErrMemory = errors.New("not enough memory")

// Accel is what executes the guest's instructions.
type Accel string

// The accelerators. Auto is KVM where it boots a guest, and TCG elsewhere.
const (
	Auto Accel = "auto"
	KVM  Accel = "kvm" // the CPU itself
	TCG  Accel = "tcg" // QEMU's translator: slower, and works everywhere
)

// qemuProgram is the QEMU of most guests.
const qemuProgram = "qemu-system-x86_64"

// File descriptors that QEMU inherits, after the standard ones.
const (
	portFD = 3 // the virtio-serial port
	netFD  = 4 // the cable to another machine, if there is one
)

// The memory that a guest takes besides its files, and the least that it is
// given.
const (
	kernelBytes  = 256 << 20
	leastDefault = 1 << 30
)

// bootLimit is how long a guest may take to answer.
func bootLimit(a Accel) time.Duration {
	if a == KVM {
		return 15 * time.Second
	}
	return 5 * time.Minute // 3 s on two idle cores; a busy host has taken 90 s for two guests
}

// arguments returns those of QEMU. The machine has no disk, no display, and no
// network unless a cable is given.
func (c *Config) arguments(a Accel, initrd string) []string {
	arch := c.Image.Kernel.Arch
	accel, cpu, machine := "kvm", "host", arch.machine
	if c.NIC != nil && c.NIC.virtual {
		machine = expressMachine
	}
	kernel := []string{"console=" + arch.console, commandLine}
	if a != KVM {
		accel, cpu = arch.tcg, arch.cpu
		kernel = append(kernel, arch.clock, tscFlag(arch))
	}
	kernel = append(kernel, c.Append)
	args := []string{
		"-accel", accel, "-cpu", cpu, "-smp", fmt.Sprint(c.CPUs), "-m", fmt.Sprintf("%dM", c.Memory>>20),
		"-machine", machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-device", "virtio-serial-pci", "-chardev", fmt.Sprintf("socket,id=port,fd=%d", portFD),
		"-device", "virtserialport,chardev=port,name=" + guest.PortName,
		"-device", "virtio-rng-pci",
		"-kernel", c.Image.Kernel.Image, "-initrd", initrd, "-append", strings.Join(kernel, " "),
	}
	if c.Cable != nil {
		args = append(args, "-netdev", fmt.Sprintf("socket,id=net0,fd=%d", netFD),
			"-device", "virtio-net-pci,netdev=net0,romfile=,mac="+c.MAC)
	}
	if c.NIC != nil {
		args = append(args, c.NIC.arguments()...)
	}
	return args
}

// expressMachine has PCI Express, whose registers virtual functions are made by.
const expressMachine = "q35,usb=off,vmport=off"

// commandLine is that of the kernel, but for its console. An oops ends the guest, as
// tests after it prove nothing; a CPU that the host keeps waiting does not count as
// locked up. The log holds all that the kernel says of the links that tests make.
const commandLine = "loglevel=5 log_buf_len=4M panic=-1 oops=panic watchdog_thresh=60 " +
	"rcupdate.rcu_cpu_stall_timeout=120 random.trust_cpu=on"

// fit chooses the memory, or checks the chosen amount, for a guest with an
// initramfs of the given size in bytes. While the kernel unpacks the initramfs, it
// is in memory twice.
func (c *Config) fit(initrd int64) error {
	least := 2*initrd + kernelBytes
	if c.Memory == 0 {
		c.Memory = max(leastDefault, (least+256<<20)&^(1<<20-1))
	}
	if c.Memory < least {
		return fmt.Errorf("%w: the guest has %d MiB, and needs %d MiB for an initramfs of %d MiB: raise -memory, or "+
			"run fewer packages at a time",
			ErrMemory, c.Memory>>20, least>>20, initrd>>20)
	}
	free, err := available()
	if err != nil {
		return err
	}
	if c.Memory > free {
		return fmt.Errorf(
			"%w: the guest is to have %d MiB, and this machine has %d MiB left: lower -memory, or end something",
			ErrMemory, c.Memory>>20, free>>20)
	}
	return nil
}

// available is the memory that the host can give away, bytes.
func available() (int64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo does not say MemAvailable")
}
