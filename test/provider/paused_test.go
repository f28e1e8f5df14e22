// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import "testing"

// A program with manual progress makes no call for longer than the give-up time, in the
// middle of a message that it sends, as MPI programs do that compute meanwhile: the
// message arrives all the same, and so does the next one.
func TestPauses(t *testing.T) {
	w := newWorld(t, "--give-up", "4s")
	w.params = []string{"FI_XDPFAB_GIVE_UP=60000"} // of the programs' own operations
	path := w.program("ends")
	to := w.start(1, path, "takes", w.net.A.IP4.String(), "0")
	if got := w.line(to); got != "ready" {
		t.Fatal(got)
	}
	from := w.start(0, path, "pauses", w.net.B.IP4.String(), "6")
	for _, p := range []*running{from, to} {
		if got := w.end(p); got != "ok" {
			t.Errorf("said %q", got)
		}
	}
}
