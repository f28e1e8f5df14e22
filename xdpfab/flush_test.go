// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Flush and Quiet return when everything has ended that was begun before, whether anybody
// waits for it or not, and whether it succeeds or fails.
func TestFlush(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		c := ctx(t)
		p, err := f.client.Dial(c, f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Flush(c), f.client.Quiet(c), f.server.Quiet(c)); err != nil {
			t.Fatal(err)
		}
		w, err := xdpfab.Word[uint64](c, p, "r", 0)
		if err != nil {
			t.Fatal(err)
		}
		ro, err := xdpfab.Word[uint64](c, p, "ro", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, wait := range []func(context.Context) error{p.Flush, f.client.Quiet} {
			const each = 200
			for range each {
				w.StartApply(c, atomic.Sum, 1)
			}
			ro.StartApply(c, atomic.Sum, 1)
			if err := wait(c); err != nil {
				t.Fatal(err)
			}
			if got := binary.LittleEndian.Uint64(f.mem); got != uint64(each*(i+1)) {
				t.Errorf("%d additions have run, want %d", got, each*(i+1))
			}
		}
		over, cancel := context.WithCancel(c)
		cancel()
		if err := p.Flush(over); !errors.Is(err, context.Canceled) || !errors.Is(err, fi.ErrNotExecuted) {
			t.Errorf("with a context that has ended: %v", err)
		}
		checkText(t, "with a context that has ended", p.Flush(over), "may still be under way: context canceled")
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Flush(c); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("of a closed peer: %v", err)
		}
		if err := f.client.CloseAll(); err != nil {
			t.Fatal(err)
		}
		checkText(t, "of a closed domain", f.client.Quiet(c), "", fi.ErrClosed, fi.ErrNotExecuted)
		if f.client.Quiet(c) == nil {
			t.Error("Quiet waits on a closed domain")
		}
	})
}
