// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"slices"
	"strings"
	"testing"
)

// Every row of the table is whole: there is one a driver, with its evidence, and its
// limits agree with each other.
func TestDrivers(t *testing.T) {
	var names []string
	for _, l := range drivers {
		if slices.Contains(names, l.Driver) || l.Driver == "" {
			t.Errorf("%q: two rows, or no name", l.Driver)
		}
		names = append(names, l.Driver)
		if l.Evidence != Tried && l.Evidence != BySource || l.Linux == "" {
			t.Errorf("%s: evidence %q on Linux %q", l.Driver, l.Evidence, l.Linux)
		}
		if !slices.Contains([]string{hasNative, hasGeneric, givesLower}, l.XDP) {
			t.Errorf("%s: XDP %q", l.Driver, l.XDP)
		}
		if l.XDP != hasNative && (l.Redirect || l.ZeroCopy || l.MTU != 0) {
			t.Errorf("%s: limits of native XDP, and %s XDP", l.Driver, l.XDP)
		}
		if l.FragsMTU != 0 && l.FragsMTU <= l.MTU || l.Segments > 0 && !l.ZeroCopy || l.ZeroCopyUnit > 0 && !l.ZeroCopy {
			t.Errorf("%s: MTU %d, with fragments %d, %d segments, zero-copy %v", l.Driver, l.MTU, l.FragsMTU,
				l.Segments, l.ZeroCopy)
		}
		if !slices.Contains([]string{"", "combined", "half", "equal half"}, l.Channels) {
			t.Errorf("%s: channels %q", l.Driver, l.Channels)
		}
		if r := l.Rules; r != nil && r.Evidence != Tried && r.Evidence != BySource {
			t.Errorf("%s: rules by evidence %q", l.Driver, r.Evidence)
		}
		for _, n := range l.Needs {
			if n.What == "" || n.Command != "" && !strings.Contains(n.Command, "IFACE") {
				t.Errorf("%s: need %+v", l.Driver, n)
			}
		}
	}
	if l, known := LimitsOf("igb"); !known || l.ZeroCopyUnit != 1024 || l.MTU != 3046 {
		t.Errorf("igb: %+v, %v", l, known)
	}
	if l, known := LimitsOf("unheard-of"); known {
		t.Errorf("a driver that is not in the table: %+v", l)
	}
}
