// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"encoding/binary"
	"testing"
)

// The words of memory are in the order of the wire.
func TestLittleEndian(t *testing.T) {
	if n := binary.NativeEndian.Uint16([]byte{1, 0}); n != 1 {
		t.Errorf("bytes 1, 0 are the number %d here, want 1", n)
	}
}
