// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// checkCores reports a core that this process may not run on.
func checkCores(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("xdpfab: sched_getaffinity: %w", err)
	}
	for _, c := range cores {
		if c < 0 || !allowed.IsSet(c) {
			return fmt.Errorf("xdpfab: core %d: not among the %d that this process may run on (see taskset -p, cpuset)",
				c, allowed.Count())
		}
	}
	return nil
}
