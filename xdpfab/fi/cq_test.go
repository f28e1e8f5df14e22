// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// aQueue is a completion queue without a domain.
func aQueue(size int64) *CompletionQueue {
	return &CompletionQueue{entries: make([]entry, size), pointers: make([]pointers, size), mask: uint64(size - 1), size: size}
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

// Places that were reserved in advance, by a goroutine that posted to the engine itself
// and does so no more, are not lost for those that post through the ring: as many
// operations as the queue has entries can be outstanding or unread.
func TestCQLendsNoPlaceForGood(t *testing.T) {
	q := aQueue(1024)
	if !q.borrow() {
		t.Fatal("nothing to borrow of an empty queue")
	}
	taken := int64(1)
	for range 2 {
		posted := 0
		for q.reserve() {
			taken, posted = taken+1, posted+1
		}
		for range posted {
			q.push(nil, nil, &engine.Completion{}, nil)
		}
		q.show()
	}
	if taken != q.size {
		t.Errorf("%d operations were accepted by a queue of %d", taken, q.size)
	}
}
