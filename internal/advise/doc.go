// SPDX-License-Identifier: Apache-2.0

// Package advise compares a machine, and an interface of it, with what
// docs/tuning.md recommends. Take reads everything into a Snapshot, once, and
// changes nothing; the checks are pure functions of it.
//
//	advise.go    verdicts, and the list of checks
//	snapshot.go  what is read: files under /proc and /sys
//	cpus.go      lists of CPUs as the kernel writes them
//	interface.go checks of the interface
//	steering.go  where its packets and interrupts go
//	cpu.go       checks of cores and power
//	kernel.go    checks of memory and kernel
//
// It has no part in the life of an operation: it says why an operation may take
// longer than it has to.
package advise
