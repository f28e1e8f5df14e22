// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || race

package atomic

import "sync/atomic"

// storeWord stores an aligned word. It is in order with every other access, and the race
// detector sees it.
func storeWord(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// fence has nothing to wait for.
func fence() {}

// writePairs and readPairs leave all words to others.
func writePairs([]uint64, []byte) int { return 0 }
func readPairs([]byte, []uint64) int  { return 0 }
