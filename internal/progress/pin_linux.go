// SPDX-License-Identifier: Apache-2.0

package progress

import "golang.org/x/sys/unix"

// pinThread binds the calling thread, which must be locked to its goroutine, to a core
// that the process may run on. If the core has gone offline since the caller checked
// it, the thread stays where it is.
func pinThread(core int) {
	var set unix.CPUSet
	set.Set(core)
	_ = unix.SchedSetaffinity(0, &set)
}
