// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import "hash/crc32"

// crcTable is what the program computes CRC32C with: entry [k][v] is the state of the sum
// after byte v and k zero bytes.
func crcTable() (t [16][256]uint32) {
	t[0] = *crc32.MakeTable(crc32.Castagnoli)
	for k := 1; k < len(t); k++ {
		for v := range t[k] {
			before := t[k-1][v]
			t[k][v] = t[0][byte(before)] ^ before>>8
		}
	}
	return t
}
