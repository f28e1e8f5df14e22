// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestLinkLocal(t *testing.T) {
	if got := linkLocal(wire.MAC{2, 0, 0, 0xaa, 0xbb, 0xcc}).String(); got != "fe80::ff:feaa:bbcc" {
		t.Error(got)
	}
}
