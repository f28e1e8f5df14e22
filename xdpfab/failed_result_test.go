// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A call that fails returns no value: neither that of the operation which used the same
// place in the engine before, nor any other.
func TestFailedCallReturnsNoValue(t *testing.T) {
	for _, mode := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		f := setUp(t, fi.DomainAttr{Progress: mode}, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		good := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
		bad := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 99}, 0)
		if err := good.Store(ctx(t), 42); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if v, err := good.Load(ctx(t)); v != 42 || err != nil {
				t.Fatal(v, err)
			}
			if v, err := bad.Load(ctx(t)); v != 0 || !errors.Is(err, fi.ErrNoKey) {
				t.Fatalf("%v: %d, %v, want 0 and ErrNoKey", mode, v, err)
			}
		}
	}
}
