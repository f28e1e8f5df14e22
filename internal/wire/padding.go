// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// A request with [FlagPadded] is longer than its records: bytes without meaning follow
// them, and then, in two bytes, the length of the records. So the packet has room for an
// answer that is longer than what was asked, for targets that turn the packet itself into
// the answer. It takes a session with [FeaturePadding].

// padLen is the length of the field that ends a padded request, bytes.
const padLen = 2

// Pad makes the payload of n bytes at the beginning of b one of length bytes, which has
// to be at least n+2.
func Pad(b []byte, n, length int) {
	clear(b[n : length-padLen])
	binary.LittleEndian.PutUint16(b[length-padLen:length], uint16(n))
}

// unpad returns the records of a padded request.
func unpad(payload []byte) ([]byte, Reason) {
	end := len(payload) - padLen
	n := int(binary.LittleEndian.Uint16(payload[end:]))
	if n < minPayload || n > end {
		return nil, ReasonBadPadding
	}
	return payload[:n], ReasonOK
}
