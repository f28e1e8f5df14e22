// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// WriteSignal writes, and then changes the word; what it refuses changes nothing.
func TestWriteSignal(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		c := ctx(t)
		p, err := f.client.Dial(c, f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Lookup(c, "r")
		if err != nil {
			t.Fatal(err)
		}
		ro, err := p.Lookup(c, "ro")
		if err != nil {
			t.Fatal(err)
		}
		s := xdpfab.Signal{Region: r, Index: 2, Op: atomic.Sum, Value: 5}
		for range 2 {
			if err := p.WriteSignal(c, r, 100, []byte("written"), s); err != nil {
				t.Fatal(err)
			}
		}
		word := func() uint64 { return binary.LittleEndian.Uint64(f.mem[16:]) }
		if got := string(f.mem[100:107]); got != "written" || word() != 10 {
			t.Errorf("%q, and %d in the word", got, word())
		}
		s.Op, s.Value = atomic.Write, 7
		if err := p.WriteSignal(c, r, 100, []byte("another"), s); err != nil || word() != 7 {
			t.Errorf("%v, %d in the word", err, word())
		}
		for want, x := range map[error]xdpfab.Signal{
			fi.ErrAccess:          {Region: ro, Op: atomic.Sum},
			fi.ErrOutOfBounds:     {Region: r, Index: r.Size / 8, Op: atomic.Sum},
			fi.ErrOpNotSupported:  {Region: r, Op: atomic.Cswap},
			fi.ErrNoKey:           {Op: atomic.Sum, Value: 1}, // no region
			errors.ErrUnsupported: {Region: r, Value: 1},      // no operation
		} {
			if err := p.WriteSignal(c, r, 100, []byte("refused"), x); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if got := string(f.mem[100:107]); got != "another" {
			t.Errorf("%q, though the signal was refused", got)
		}
	})
}
