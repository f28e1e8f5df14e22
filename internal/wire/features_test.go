// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"testing"
)

// Each feature that a node offers has a name, and one of a later release is shown, too.
func TestFeaturesHaveNames(t *testing.T) {
	names := Offered.Names()
	if len(names) != 13 || slices.ContainsFunc(names, func(n string) bool { return n[:3] == "bit" }) {
		t.Errorf("%q", names)
	}
	if got := (FeatureMessages | 1<<20).Names(); !slices.Equal(got, []string{"messages", "bit-20"}) {
		t.Errorf("%q", got)
	}
	if len(Features(0).Names()) != 0 {
		t.Error("names of nothing")
	}
}
