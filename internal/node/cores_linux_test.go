// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A core that the process may not run on is refused with those that it may.
func TestForeignCoreRefused(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	want := "core 1000 (DomainAttr.Cores): want some of " + ranges(&allowed) + ", which"
	if err := checkCores([]int{1000}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	for want, cores := range map[string][]int{"": nil, "0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "5,7-8": {5, 7, 8}} {
		var set unix.CPUSet
		for _, c := range cores {
			set.Set(c)
		}
		if got := ranges(&set); got != want {
			t.Errorf("%v: %q, want %q", cores, got, want)
		}
	}
}
