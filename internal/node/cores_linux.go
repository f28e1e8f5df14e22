// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strconv"
	"strings"

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
			return fmt.Errorf("xdpfab: core %d (DomainAttr.Cores): want some of %s, which this process may run on "+
				"(taskset -p, cpuset)", c, ranges(&allowed))
		}
	}
	return nil
}

// ranges lists the cores of a set as taskset does, such as 0-3,8.
func ranges(set *unix.CPUSet) string {
	var all []string
	for c, left := 0, set.Count(); left > 0; c++ {
		first := c
		for ; set.IsSet(c); c++ {
			left--
		}
		switch c - first {
		case 0:
		case 1:
			all = append(all, strconv.Itoa(first))
		default:
			all = append(all, fmt.Sprintf("%d-%d", first, c-1))
		}
	}
	return strings.Join(all, ",")
}
