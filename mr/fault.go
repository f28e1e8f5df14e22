// SPDX-License-Identifier: Apache-2.0

package mr

import "fmt"

// Fault is why Region.Resolve refuses. FaultNone, the zero value, says that it does not.
type Fault uint8

// The faults, in the order of the checks.
const (
	FaultNone      Fault = iota
	FaultAccess          // a right is missing
	FaultBounds          // not wholly inside the region
	FaultAlignment       // address not a multiple of the alignment
)

// String returns the fault in words.
func (f Fault) String() string {
	if names := [...]string{"no fault", "no access", "out of bounds", "misaligned"}; int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}
