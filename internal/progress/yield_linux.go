// SPDX-License-Identifier: Apache-2.0

package progress

import "golang.org/x/sys/unix"

// yieldCPU lets another thread run that waits for this one's CPU. Go's scheduler is not
// told, as it is not when the kernel preempts a thread.
func yieldCPU() {
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
