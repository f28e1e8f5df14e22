// SPDX-License-Identifier: Apache-2.0

package share

import (
	"slices"
	"testing"
)

// A side agrees to what both know, and to nothing with one that says nothing.
func TestAgreed(t *testing.T) {
	if got := Agreed([]string{"flying", FeatureText, FeatureText}); !slices.Equal(got, []string{FeatureText}) {
		t.Errorf("%v", got)
	}
	if got := Agreed(nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := Agreed(Features); !slices.Equal(got, Features) {
		t.Errorf("%v, want %v", got, Features)
	}
}
