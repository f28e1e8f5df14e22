// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"testing"
)

func BenchmarkChecksum(b *testing.B) {
	for _, n := range []int{MinFrame, 256, 512, 1500, 9000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			frame := make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				Checksum(frame)
			}
		})
	}
}
