// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"testing"
)

func TestCPUs(t *testing.T) {
	for text, want := range map[string]string{"": "none", "(null)": "none", "3": "3", "0-3,8,6-7": "0-3,6-8", "1,1": "1"} {
		if set, err := parseCPUs(text); err != nil || set.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, set, err, want)
		}
	}
	for _, text := range []string{"x", "3-1", "-1", "1,", "0-99999999"} {
		if set, err := parseCPUs(text); err == nil {
			t.Errorf("%q: %v", text, set)
		}
	}
}
