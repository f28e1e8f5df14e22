// SPDX-License-Identifier: Apache-2.0

package wire

import "golang.org/x/sys/cpu"

// shortFrame is the longest frame in bytes for which one stream of CRC32
// instructions is faster than three that have to be joined; 0 without the
// instruction. Written only here and by tests.
var shortFrame = func() int {
	if cpu.X86.HasSSE42 {
		return 512
	}
	return 0
}()

// checksumSSE42 is Checksum in one go. The frame has at least MinFrame bytes.
//
//go:noescape
func checksumSSE42(frame []byte) uint32
