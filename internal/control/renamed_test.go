// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"path/filepath"
	"strings"
	"testing"
)

// The daemon of a renamed interface is found by its former name, and another one is not
// taken for it.
func TestFindRenamed(t *testing.T) {
	own := sample
	own.NetNS, own.RenamedFrom = Namespace(), "x"
	path := startService(t, Service{Source: func() (Status, error) { return own, nil }})
	pattern := filepath.Join(filepath.Dir(path), "*.sock")
	r, is := FindRenamed(t.Context(), "eth7", pattern)
	if text := r.String(); !is || r.Path != path || !strings.Contains(text, "eth7 is the x of xdpfabd, process 4711, renamed") ||
		!strings.Contains(text, "`ip link set dev eth7 name x`") {
		t.Errorf("%t, %s", is, text)
	}
	if r, is := FindRenamed(t.Context(), "eth8", pattern); is {
		t.Errorf("another interface: %v", r)
	}
	own.RenamedFrom = ""
	if r, is := FindRenamed(t.Context(), "eth7", pattern); is {
		t.Errorf("not renamed: %v", r)
	}
	own.NetNS, own.RenamedFrom = own.NetNS+1, "x"
	if r, is := FindRenamed(t.Context(), "eth7", pattern); is {
		t.Errorf("another namespace: %v", r)
	}
}
