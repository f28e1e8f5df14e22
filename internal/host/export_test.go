// SPDX-License-Identifier: Apache-2.0

package host

import (
	"maps"
	"slices"
)

// Verbs returns the verbs of programs that borrow no queue.
func Verbs() []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(guestCalls)), maps.Keys(firstCalls))
	return slices.DeleteFunc(all, func(verb string) bool { return verb == "borrow" })
}
