// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"testing"
)

func TestElsewhere(t *testing.T) {
	if Namespace() == 0 {
		t.Fatal("the kernel does not tell")
	}
	for ns, want := range map[uint64]bool{Namespace(): false, Namespace() + 1: true, 0: false} { // 0: not told
		if s := (Status{NetNS: ns}); s.Elsewhere() != want {
			t.Errorf("%d: elsewhere %v", ns, !want)
		}
	}
}
