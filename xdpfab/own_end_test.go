// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// The owner's code may be inside a word when a test crashes the node or closes it: a
// goroutine of the program does not end with its domain, and the test process must not
// end for it.
func TestOwnWordAfterTheEnd(t *testing.T) {
	for name, size := range map[string]int{"small": 64, "huge pages": 2 * mr.HugePageSize} {
		t.Run(name, func(t *testing.T) {
			w, err := xdpfab.NewNetwork(3)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var own [3]*atomic.Uint64
			for i := range own {
				s, err := w.Node(i).Serve("own", size)
				if err != nil {
					t.Fatal(err)
				}
				if own[i], err = s.Region.Uint64(size/8 - 1); err != nil {
					t.Fatal(err)
				}
				own[i].Store(uint64(i))
			}
			for i, end := range []func() error{
				func() error { return w.Crash(0) },
				func() error { return w.Node(1).CloseAll() },
				func() error { _, err := w.Restart(2); return err },
			} {
				if err := end(); err != nil {
					t.Fatal(err)
				}
				if n := own[i].Add(1); n != uint64(i)+1 {
					t.Errorf("node %d: %d, want %d: the word that it had, and 1", i, n, i+1)
				}
			}
		})
	}
}
