// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import "testing"

// The counter of a region counts also the changes of it that return something.
func TestRegionCounter(t *testing.T) {
	w := newWorld(t)
	if got := w.end(w.start(0, w.program("counts"), w.net.A.IP4.String())); got != "ok" {
		t.Errorf("said %q", got)
	}
}
