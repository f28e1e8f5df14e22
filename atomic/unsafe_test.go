// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"sync"
	"sync/atomic"
	"testing"
)

// The address of an element is found without a look at the element, which other
// pollers may be changing: with the race detector this would fail.
func TestElementAtReadsNothing(t *testing.T) {
	mem := make([]byte, 16)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for range 1000 {
				atomic.AddUint64((*uint64)(elementAt[uint64](mem, 8)), 1)
			}
		})
	}
	group.Wait()
	if mem[8] != 2000%256 {
		t.Errorf("the element's lowest byte is %d, want %d", mem[8], 2000%256)
	}
	defer func() {
		if recover() == nil {
			t.Error("an element that ends beyond the memory has an address")
		}
	}()
	elementAt[uint64](mem[:12], 8)
}
