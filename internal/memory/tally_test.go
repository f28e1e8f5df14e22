// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Each region learns what was applied to it, also if they take turns within a frame, and
// nothing of what failed.
func TestRegionsAreTallied(t *testing.T) {
	table := mr.NewTable()
	m := New(table)
	defer m.Close()
	one, two := uint64(1), uint64(2)
	a, b := register(t, table, &one), register(t, table, &two)
	frame(t, m, remoteWrite(1, 0, make([]byte, 5)), remoteRead(2, 0, 3), remoteWrite(1, 8, make([]byte, 2)), remoteRead(2, 1<<40, 8))
	frame(t, m, remoteRead(2, 8, 1))
	if got, want := a.Tally(), (mr.Tally{NonFetching: 2, NonFetchingBytes: 7}); got != want {
		t.Errorf("region 1: %+v, want %+v", got, want)
	}
	if got, want := b.Tally(), (mr.Tally{Fetching: 2, FetchingBytes: 4}); got != want {
		t.Errorf("region 2: %+v, want %+v", got, want)
	}
}

// Bursts of 1 and of 64 frames, each of one fetch-add.
func BenchmarkExecute(b *testing.B) {
	for _, burst := range []int{1, 64} {
		b.Run(map[int]string{1: "burst=1", 64: "burst=64"}[burst], func(b *testing.B) {
			table := mr.NewTable()
			m := New(table)
			defer m.Close()
			mem, err := mr.Alloc(4096, mr.AllocOptions{})
			if err != nil {
				b.Fatal(err)
			}
			key := uint64(7)
			if _, err := table.Register(mem, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
				b.Fatal(err)
			}
			var w wire.RecordWriter
			payload, resp := make([]byte, 1400), make([]byte, 1400)
			w.Reset(payload, len(resp))
			w.Append(&wire.Record{Verb: wire.VerbFetch, Op: 2, Datatype: 7, Key: key, Count: 1, Operand: make([]byte, 8)})
			b.ReportAllocs()
			for i := range b.N {
				m.Check(payload[:w.Len()], w.Ops())
				m.Execute(resp, 0)
				if i%burst == burst-1 {
					m.Leave()
				}
			}
		})
	}
}
