// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package atomic

import (
	"encoding/binary"
	"sync/atomic"
)

// storeWord stores an aligned word. A plain store is one access, and CPUs of amd64 show
// stores in their order, so only the last one has to be fenced. An atomic store would be
// an exchange, which takes as long as twenty plain ones.
func storeWord(p *uint64, v uint64) { *p = v }

// fence waits until other CPUs can see all stores before it, as they can after an
// exchange.
func fence() {
	var x uint32
	atomic.AddUint32(&x, 1)
}

// writePairs stores the first of at least 9 words, two at a time, and returns their
// number, which may be 0. An aligned store of 16 bytes is one access where a load is.
func writePairs(to []uint64, from []byte) (n int) {
	if !atomicMOVDQA {
		return 0
	}
	if betweenPairs(to) {
		to[0], n = binary.LittleEndian.Uint64(from), 1
	}
	end := n + (len(to)-n)&^7
	storePairs(to[n:end], from[8*n:8*end])
	return end
}

// readPairs loads the first of at least 9 words, two at a time, and returns their number,
// which may be 0.
func readPairs(to []byte, from []uint64) (n int) {
	if !atomicMOVDQA {
		return 0
	}
	if betweenPairs(from) {
		binary.LittleEndian.PutUint64(to, from[0])
		n = 1
	}
	end := n + (len(from)-n)&^7
	loadPairs(to[8*n:8*end], from[n:end])
	return end
}
