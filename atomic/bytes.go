// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"encoding/binary"
	"sync/atomic"
)

// worthPairs is the number of words from which on pairs of them are faster.
const worthPairs = 16

// WriteBytes copies from to mem, which is as long, in ascending order. Each word of 8
// bytes, by its address, changes at once, whole or in the part that mem has of it: so
// readers that use this package or sync/atomic see no word that is torn, and updates of
// theirs are not lost. When WriteBytes returns, the bytes are in place as after any other
// operation of this package.
func WriteBytes(mem, from []byte) {
	from = from[:len(mem)]
	if in := misalignment(mem, 8); in != 0 {
		n := min(8-in, len(mem))
		writePart(mem[:n], from)
		mem, from = mem[n:], from[n:]
	}
	if len(mem) >= 8*worthPairs {
		n := 8 * writePairs(words64(mem[:len(mem)&^7]), from)
		if mem, from = mem[n:], from[n:]; len(mem) < 8 {
			fence()
		}
	}
	if n := len(mem) &^ 7; n > 0 {
		writeWords(words64(mem[:n]), from)
		mem, from = mem[n:], from[n:]
		fence()
	}
	if len(mem) > 0 {
		writePart(mem, from)
	}
}

// writeWords stores the words in from.
func writeWords(to []uint64, from []byte) {
	le := binary.LittleEndian
	for ; len(to) >= 8; to, from = to[8:], from[64:] {
		w, b := (*[8]uint64)(to), (*[64]byte)(from)
		storeWord(&w[0], le.Uint64(b[0:]))
		storeWord(&w[1], le.Uint64(b[8:]))
		storeWord(&w[2], le.Uint64(b[16:]))
		storeWord(&w[3], le.Uint64(b[24:]))
		storeWord(&w[4], le.Uint64(b[32:]))
		storeWord(&w[5], le.Uint64(b[40:]))
		storeWord(&w[6], le.Uint64(b[48:]))
		storeWord(&w[7], le.Uint64(b[56:]))
	}
	for i := range to {
		storeWord(&to[i], le.Uint64(from[8*i:]))
	}
}

// writePart replaces the bytes of mem, all in one word, by those of from, and leaves the
// rest of the word alone, also if it changes meanwhile.
func writePart(mem, from []byte) {
	word, shift := wordAround(mem)
	var v [8]byte
	copy(v[:], from[:len(mem)])
	mask := (uint64(1)<<(8*len(mem)) - 1) << shift
	n := binary.LittleEndian.Uint64(v[:]) << shift
	for {
		old := atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, old, old&^mask|n) {
			return
		}
	}
}

// ReadBytes copies mem to to, which is as long, in ascending order. Each word of 8 bytes
// of mem, by its address, is read at once, whole or in the part that mem has of it.
func ReadBytes(to, mem []byte) {
	to = to[:len(mem)]
	if in := misalignment(mem, 8); in != 0 {
		n := min(8-in, len(mem))
		readPart(to, mem[:n])
		to, mem = to[n:], mem[n:]
	}
	if len(mem) >= 8*worthPairs {
		n := 8 * readPairs(to, words64(mem[:len(mem)&^7]))
		to, mem = to[n:], mem[n:]
	}
	n := len(mem) &^ 7
	readWords(to, words64(mem[:n]))
	if n < len(mem) {
		readPart(to[n:], mem[n:])
	}
}

// readWords loads the words into to.
func readWords(to []byte, from []uint64) {
	le := binary.LittleEndian
	for ; len(from) >= 8; to, from = to[64:], from[8:] {
		b, w := (*[64]byte)(to), (*[8]uint64)(from)
		le.PutUint64(b[0:], atomic.LoadUint64(&w[0]))
		le.PutUint64(b[8:], atomic.LoadUint64(&w[1]))
		le.PutUint64(b[16:], atomic.LoadUint64(&w[2]))
		le.PutUint64(b[24:], atomic.LoadUint64(&w[3]))
		le.PutUint64(b[32:], atomic.LoadUint64(&w[4]))
		le.PutUint64(b[40:], atomic.LoadUint64(&w[5]))
		le.PutUint64(b[48:], atomic.LoadUint64(&w[6]))
		le.PutUint64(b[56:], atomic.LoadUint64(&w[7]))
	}
	for i := range from {
		le.PutUint64(to[8*i:], atomic.LoadUint64(&from[i]))
	}
}

// readPart copies the bytes of mem, all in one word.
func readPart(to, mem []byte) {
	word, shift := wordAround(mem)
	var v [8]byte
	binary.LittleEndian.PutUint64(v[:], atomic.LoadUint64(word)>>shift)
	copy(to[:len(mem)], v[:])
}
