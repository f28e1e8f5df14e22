// SPDX-License-Identifier: Apache-2.0

// Package dies makes the machine panic.
package dies

import (
	"os"
	"testing"
)

// Test writes to the kernel's trigger of a crash, if it runs in a virtual machine.
func Test(t *testing.T) {
	if os.Getenv("XDPFAB_VM") == "" {
		t.Skip("crashes the machine")
	}
	if err := os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0); err != nil {
		t.Fatal(err)
	}
	select {}
}
