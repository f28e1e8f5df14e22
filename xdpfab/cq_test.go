// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "testing"

// aQueue is a completion queue without a domain.
func aQueue(size int64) *CompletionQueue {
	return &CompletionQueue{size: size}
}

// A goroutine that has found the queue full has counted itself for a moment. Whoever
// borrows then gives back no more than it took, or the queue would promise a place twice.
func TestCQPromisesNoPlaceTwice(t *testing.T) {
	q := aQueue(1024)
	for range q.size {
		if !q.reserve() {
			t.Fatal("full too early")
		}
	}
	q.reserved.Add(1) // the first half of reserve
	if q.borrow() {
		t.Error("borrowed from a full queue")
	}
	q.reserved.Add(-1) // the other half
	if n := q.reserved.Load(); n != q.size {
		t.Errorf("%d places of %d are taken, want all", n, q.size)
	}
}
