// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package atomic

import "sync/atomic"

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
