// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cpuSet is a set of CPU numbers, ascending.
type cpuSet []int

// maxCPU is above the number of any CPU (NR_CPUS is at most 8192).
const maxCPU = 1 << 16

// parseCPUs reads the kernel's notation, "0-3,8". An empty list, and "(null)" as
// some files have it, is the empty set.
func parseCPUs(text string) (set cpuSet, err error) {
	if text == "" || text == "(null)" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		a, err1 := strconv.Atoi(lo)
		b, err2 := strconv.Atoi(hi)
		if err1 != nil || err2 != nil || a < 0 || b < a || b >= maxCPU {
			return nil, fmt.Errorf("%q is not a list of CPUs such as 0-3,8", text)
		}
		for c := a; c <= b; c++ {
			set = append(set, c)
		}
	}
	slices.Sort(set)
	return slices.Compact(set), nil
}

// String is the kernel's notation.
func (s cpuSet) String() string {
	if len(s) == 0 {
		return "none"
	}
	var parts []string
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(s[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", s[i], s[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// without returns the CPUs that are not in o.
func (s cpuSet) without(o cpuSet) (rest cpuSet) {
	for _, c := range s {
		if !slices.Contains(o, c) {
			rest = append(rest, c)
		}
	}
	return rest
}

// and returns the CPUs that are in both.
func (s cpuSet) and(o cpuSet) cpuSet { return s.without(s.without(o)) }
