// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "golang.org/x/sys/unix"

// pinThread binds the calling thread to a core. A core that does not exist, or
// is not allowed to this process, leaves the thread where it is: the choice is
// checked when the domain opens, see DomainAttr.Cores.
func pinThread(core int) {
	var set unix.CPUSet
	set.Set(core)
	_ = unix.SchedSetaffinity(0, &set)
}
