// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// A frame of which nothing runs, since it is malformed, holds up no region: nobody says
// that a burst is over in which nothing ran.
func TestMalformedFrameHoldsNoRegion(t *testing.T) {
	table := mr.NewTable()
	m := New(table)
	defer m.Close()
	key := uint64(1)
	region := register(t, table, &key)
	if _, reason := m.Check([]byte{0xff, 0xff, 0xff, 0xff}, 1); reason == wire.ReasonOK {
		t.Fatal("not malformed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), testnet.Patience)
	defer cancel()
	if err := region.CloseContext(ctx); err != nil {
		t.Error(err)
	}
}
