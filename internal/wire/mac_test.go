// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"testing"
)

// Errors name addresses as people write them.
func TestMACString(t *testing.T) {
	if s := fmt.Sprint(MAC{2, 0, 0, 0, 0, 11}); s != "02:00:00:00:00:0b" {
		t.Errorf("%s", s)
	}
}
