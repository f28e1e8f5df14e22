// SPDX-License-Identifier: Apache-2.0

package atomic

import "testing"

// TestOlderCPUs repeats the vectors as on CPUs without AVX, and without
// CMPXCHG16B.
func TestOlderCPUs(t *testing.T) {
	defer func(a, b bool) { native16, atomicMOVDQA = a, b }(native16, atomicMOVDQA)
	atomicMOVDQA = false
	t.Run("without AVX", TestVectors)
	t.Run("without AVX, torn reads", TestNoTornReads)
	t.Run("without AVX, bytes", TestBytesAreCopied)
	native16 = false
	t.Run("without CMPXCHG16B", TestVectors)
}
