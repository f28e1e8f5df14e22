// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A log that is given a handle says what it is of.
func TestTextsOfHandles(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	if _, err := f.server.Serve("told", 64); err != nil {
		t.Fatal(err)
	}
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	v, err := xdpfab.Vector[uint64](ctx(t), p, "told")
	if err != nil {
		t.Fatal(err)
	}
	at := f.server.Name(0)
	for want, handle := range map[string]any{
		at:                                 p,
		"":                                 (*xdpfab.Peer)(nil),
		`region "told" on ` + at:           v,
		`word 3 of region "told" on ` + at: v.At(3),
		"word 2 of a region without a name on " + at: xdpfab.WordAt[uint32](p, xdpfab.RemoteRegion{Key: 7}, 2),
		"no word":   xdpfab.Remote[uint64]{},
		"no region": xdpfab.RemoteVector[uint64]{},
	} {
		if got := fmt.Sprint(handle); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
