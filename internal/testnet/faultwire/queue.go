// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import "container/heap"

// held is a frame that waits for its time.
type held struct {
	due   int64  // ns on the wire's clock
	order uint64 // of arrival: frames due at the same time leave in order
	frame []byte // of a recycled buffer
}

// delayQueue holds frames until they are due, at most limit of them. Buffers are
// recycled, so its memory grows to limit frames at most and never beyond.
type delayQueue struct {
	heap  dueHeap
	spare [][]byte
	next  uint64
	limit int
	size  int // bytes of a buffer
}

// push copies a frame in; it returns false if the queue is full.
func (q *delayQueue) push(due int64, frame []byte) bool {
	if len(q.heap) >= q.limit || len(frame) > q.size {
		return false
	}
	var buf []byte
	if n := len(q.spare) - 1; n >= 0 {
		buf, q.spare = q.spare[n], q.spare[:n]
	} else {
		buf = make([]byte, q.size)
	}
	n := copy(buf[:q.size], frame)
	heap.Push(&q.heap, held{due: due, order: q.next, frame: buf[:n]})
	q.next++
	return true
}

// due returns when the first frame is due.
func (q *delayQueue) due() (at int64, ok bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].due, true
}

// pop takes the first frame out; the frame is valid until the next push.
func (q *delayQueue) pop() []byte {
	h := heap.Pop(&q.heap).(held)
	q.spare = append(q.spare, h.frame)
	return h.frame
}

// dueHeap implements heap.Interface.
type dueHeap []held

func (h dueHeap) Len() int      { return len(h) }
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h dueHeap) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].order < h[j].order
}
func (h *dueHeap) Push(x any) { *h = append(*h, x.(held)) }
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = held{}
	*h = old[:len(old)-1]
	return x
}
