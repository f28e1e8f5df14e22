// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"runtime"
	"strings"
)

// Arch is the architecture of a guest's processor.
type Arch struct {
	Name string // as Go and Debian call it

	qemu     string // the emulator's program
	packages string // Debian's, that has it
	machine  string // QEMU's kind of machine
	tcg      string // QEMU's translator, with its properties
	cpu      string // the processor that the translator has
	console  string // the kernel's name of the first serial port
	clock    string // what TCG's kernel is told of its clocks
	triplet  string // of the folders of libraries
}

// AMD64 is what most hosts have, too.
//
// TCG runs it without cmpxchg16b: as QEMU 7.2 translates it, an interrupt right after it
// finds wrong flags, which crashes kernels that allocate with it. TCG also runs in one
// thread for all CPUs: with several, one CPU may meet the breakpoint with which another
// patches the kernel's code after it is gone. That costs a tenth of the speed. Without
// erms and fsrm kernels copy and clear memory by words; they take those two for a sign
// that bytes are as fast, which TCG moves one by one: with them, tests of package xsk
// took twice the time.
//
// Under TCG all clocks are the host's, which may take the thread away between two
// readings. So the kernel is told that the TSC is right, and its frequency (tscFlag). Nor
// may it check at boot that the timer ticks within a few milliseconds, and panic if not
// ("IO-APIC + timer doesn't work").
var AMD64 = &Arch{Name: "amd64", qemu: qemuProgram, packages: "qemu-system-x86",
	machine: "pc,usb=off,vmport=off", tcg: "tcg,thread=single", cpu: "max,-cx16,-erms,-fsrm",
	console: "ttyS0,115200", clock: "tsc=reliable no_timer_check", triplet: "x86_64-linux-gnu"}

// ARM64 has a thread of the host for each CPU, so that two of them really run at the same
// time. Kernels before 5.12 do not boot on a processor with addresses of 52 bits in pages
// of 4 KiB (lpa2), and signing each return address as the architecture says takes half of
// the translator's time (pauth-impdef).
var ARM64 = &Arch{Name: "arm64", qemu: "qemu-system-aarch64", packages: "qemu-system-arm",
	machine: "virt,gic-version=3", tcg: "tcg,thread=multi", cpu: "max,lpa2=off,pauth-impdef=on",
	console: "ttyAMA0,115200", triplet: "aarch64-linux-gnu"}

// Arches are the architectures that [FindArch] knows.
var Arches = []*Arch{AMD64, ARM64}

// FindArch looks an architecture up by its name.
func FindArch(name string) (*Arch, error) {
	a, known := named(Arches, name, func(a *Arch) string { return a.Name })
	if a == nil {
		return nil, fmt.Errorf("architecture %q: want one of %s", name, known)
	}
	return *a, nil
}

// named returns the element of a name, nil if there is none, and the names of all.
func named[T any](all []T, name string, of func(T) string) (found *T, known string) {
	names := make([]string, len(all))
	for i := range all {
		if names[i] = of(all[i]); names[i] == name {
			found = &all[i]
		}
	}
	return found, strings.Join(names, ", ")
}

// Native reports whether the host has this architecture: only then can its programs be
// taken for the guest, and KVM execute it.
func (a *Arch) Native() bool { return a.Name == runtime.GOARCH }

// suffix tells the folders of the cache apart that are for this architecture.
func (a *Arch) suffix() string {
	if a == AMD64 {
		return ""
	}
	return "-" + a.Name
}
