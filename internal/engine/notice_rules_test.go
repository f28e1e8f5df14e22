// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// The notice of an operation covers the records of its own unit. If another unit has
// some, they have to be answered first, and the notice covers nothing.
func TestNoticeOfSeveralUnits(t *testing.T) {
	r := &remote{origin: &Origin{endpoint: 9}}
	for name, c := range map[string]struct {
		by      []uint32 // the units of its frames, of 10 records each
		pending uint32
		waits   bool
		covers  uint32
	}{
		"one unit":                    {[]uint32{5, 5}, 2, false, 20},
		"one unit, answered":          {[]uint32{5, 5}, 0, false, 20},
		"the unit before":             {[]uint32{4, 4}, 1, true, 0},
		"the unit before, done":       {[]uint32{4, 4}, 0, false, 0},
		"both":                        {[]uint32{4, 5}, 2, true, 0},
		"both, done":                  {[]uint32{4, 5}, 0, false, 0},
		"two before":                  {[]uint32{3, 4}, 1, true, 0},
		"this, another and this, too": {[]uint32{5, 4, 5}, 1, true, 0},
	} {
		f := &flight{}
		f.Verb, f.Datatype, f.Count, f.Flags, f.Data = wire.VerbFetch, 7, 100, FlagData, 3
		if f.sent = 99; f.waits(&conn{r: r, unit: 5}) {
			t.Errorf("%s: it waits before all elements are packed", name)
		}
		f.sent = 100
		for _, unit := range c.by {
			f.cover(&conn{r: r, unit: unit}, 10)
		}
		f.pending = c.pending
		now := &conn{r: r, unit: 5}
		if got := f.waits(now); got != c.waits {
			t.Errorf("%s: waits: %t, want %t", name, got, c.waits)
		}
		if c.waits {
			continue
		}
		var w wire.RecordWriter
		var frag fragment
		b := make([]byte, 64)
		w.Reset(b, 64)
		now.packNotice(&w, f, &frag)
		if f.waits(now) || !f.packed() || frag.records != 1 {
			t.Errorf("%s: after its notice: %+v", name, frag)
		}
		var rd wire.RecordReader
		var rec wire.Record
		rd.Reset(b[:w.Len()], 1)
		rd.Next(&rec)
		want := wire.Notice{Data: 3, Length: 800, Covers: c.covers, Source: 9, Returns: true}
		if got := rd.Notice(); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
