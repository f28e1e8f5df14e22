// SPDX-License-Identifier: Apache-2.0

package atomic

import "testing"

// TestOlderCPUs repeats the vectors as on CPUs before Armv8.1, which cannot exchange 16
// bytes.
func TestOlderCPUs(t *testing.T) {
	if !native16 {
		t.Fatal("this CPU is such a one: the exchange of 16 bytes is not tested; take -cpu max")
	}
	defer func() { native16 = true }()
	native16 = false
	t.Run("without LSE", TestVectors)
}
