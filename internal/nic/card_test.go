// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import "testing"

// A row after a trial has what was seen, in place of what was supposed.
func TestRow(t *testing.T) {
	_, i := good()
	i.Driver, i.features = "ice", XDPBasic|XDPRedirect|XDPZeroCopy
	l := i.Row("6.12.43+deb13-amd64", Seen{"native", "zero-copy", 3500})
	if l.Evidence != Tried || l.Linux != "6.12" || l.XDP != hasNative || !l.ZeroCopy || l.MTU != 3500 || l.RXRing != 512 {
		t.Errorf("ice: %+v", l)
	}
	i.Driver, i.FeaturesKnown, i.features = "unheard-of", true, XDPBasic
	if l := i.Row("6.1", Seen{"native", "copy", 1500}); l.Driver != "unheard-of" || !l.Redirect || l.ZeroCopy || l.MTU != 0 {
		t.Errorf("an unknown driver: %+v", l)
	}
	i.features = 0
	if l := i.Row("6.1", Seen{"generic", "copy", 1500}); l.XDP != hasGeneric || l.Redirect {
		t.Errorf("generic alone: %+v", l)
	}
}
