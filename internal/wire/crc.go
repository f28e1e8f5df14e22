// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// The checksum is CRC32C over the whole frame with the checksum field taken as zero.
// Where the CPU has the instructions, it is computed by our own, in one go: hash/crc32
// has three streams too, but of fixed lengths, which leave much of a frame to a single
// one.
//
// Elsewhere hash/crc32 sums. The frame must not be written to (no one shares a received
// chunk, but there may be other views of it), and a copy on the stack would escape. CRC
// is linear: two equally long inputs that differ by d in one place have checksums that
// differ by d, advanced over the bytes that follow. So we sum the bytes as they are, and
// take the field's contribution out again by table: right after the field for long frames
// (two calls), and at the end for frames of MinFrame bytes, the most common ones (one
// call).

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// advance[k] advances one byte of CRC state, at byte position k of the word, over zeros.
type advance [4][256]uint32

var (
	overField = newAdvance(HeaderLen - crcOff) // to the end of the header
	overMin   = newAdvance(MinFrame - crcOff)  // to the end of a frame of MinFrame
)

// newAdvance tabulates the effect of n zero bytes on a CRC state.
func newAdvance(n int) *advance {
	t := new(advance)
	for k := range t {
		for v := range t[k] {
			state := uint32(v) << (8 * k)
			for range n {
				state = castagnoli[byte(state)] ^ state>>8
			}
			t[k][v] = state
		}
	}
	return t
}

func (t *advance) of(v uint32) uint32 {
	return t[0][byte(v)] ^ t[1][byte(v>>8)] ^ t[2][byte(v>>16)] ^ t[3][v>>24]
}

// Checksum returns the checksum that belongs in the frame. It does not depend on the
// checksum field's present value and writes nothing. The frame has at least MinFrame
// bytes.
func Checksum(frame []byte) uint32 {
	if native && len(frame) >= MinFrame && len(frame) <= MaxFrame {
		return checksumNative(frame)
	}
	field := binary.LittleEndian.Uint32(frame[crcOff:])
	if len(frame) == MinFrame {
		return crc32.Update(0, castagnoli, frame) ^ overMin.of(field)
	}
	head := crc32.Update(0, castagnoli, frame[:HeaderLen]) ^ overField.of(field)
	return crc32.Update(head, castagnoli, frame[HeaderLen:])
}
