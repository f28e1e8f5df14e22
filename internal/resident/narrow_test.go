// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Where a switch drops frames longer than Ethernet's, on the way there or back, resident
// sessions find out and have short ones, as others do. Elsewhere they have those of
// MaxFrame.
func TestNarrowPath(t *testing.T) {
	const n, ethernet = 100, 1514 // operations; the longest packet of an MTU of 1500
	for _, c := range []struct {
		name        string
		there, back int // longest packets; 0 for no limit
		narrow      bool
	}{{"wide", 0, 0, false}, {"narrow there", ethernet, 0, true}, {"narrow back", 0, ethernet, true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldOf(t, 1, 9000)
			p, err := w.a.NewPeer(wire.Link{Local: macs[0], Remote: macs[1]}, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			w.pa.SetLongest(c.there)
			w.nic.SetLongest(c.back)
			var o outcomes
			for range n {
				w.until(func() bool { return w.addMany(p, &o) })
			}
			w.until(func() bool { return o.n == n })
			if got := binary.LittleEndian.Uint64(w.words); o.bad > 0 || got != n {
				t.Errorf("%d operations ran, want %d; %d failed, the last %+v", got, n, o.bad, o.last)
			}
			w.a.Publish()
			w.b.Publish()
			want := map[bool]uint64{true: 1}[c.narrow]
			if got := w.a.Counters()[engine.PathsNarrow]; got != want {
				t.Errorf("%d paths are narrow, want %d", got, want)
			}
			if got := w.b.Counters()[engine.Invalid]; got != 0 {
				t.Errorf("%d frames are invalid", got)
			}
			if w.nic.longest > ethernet == (c.there > 0) || w.nic.sent < 3 {
				t.Errorf("the longest packet that came has %d bytes; the program answered %d", w.nic.longest, w.nic.sent)
			}
		})
	}
}

// A resident session that has found its path narrow goes on trying while no process
// answers long probes: its operations run, and it has long frames soon after a process is
// there again.
func TestNarrowAndNobodyThere(t *testing.T) {
	const ethernet = 1514
	w := newWorldOf(t, 1, 9000)
	p, err := w.a.NewPeer(wire.Link{Local: macs[0], Remote: macs[1]}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.pa.SetLongest(ethernet)
	var o outcomes
	more := func(n int) {
		t.Helper()
		for n += o.n; o.n < n; {
			before := o.n
			for range 8 {
				w.until(func() bool { return w.addMany(p, &o) })
			}
			w.until(func() bool { return o.n == before+8 })
			w.now += int64(100 * time.Millisecond)
		}
	}
	more(8)
	w.pa.SetLongest(0)
	for lane := range uint32(64) {
		if err := w.x.objects.Sockets.Delete(lane); err != nil {
			t.Fatal(err)
		}
	}
	w.absent = true
	const minute = 600 * 8 // operations
	for range 5 {
		w.nic.requests = 0
		if more(minute); w.nic.requests > ethernet {
			t.Fatalf("a request of %d bytes, though nobody has answered a long probe", w.nic.requests)
		}
	}
	w.absent = false
	addSocket(t, w.x)
	if more(10 * minute); w.nic.requests <= ethernet {
		t.Errorf("the longest request has %d bytes when somebody has been there for ten minutes", w.nic.requests)
	}
	if w.a.Publish(); o.bad > 0 || w.a.Counters()[engine.PathsNarrow] != 1 || w.a.Counters()[engine.SessionsOpened] != 1 {
		t.Errorf("%d operations failed, the last %+v; %d sessions", o.bad, o.last, w.a.Counters()[engine.SessionsOpened])
	}
}

// addMany posts a fetch-add of 1 to each of 60 words: four of these make a frame longer
// than Ethernet's, and shorter than MaxFrame, in either direction.
func (w *world) addMany(p *engine.Peer, o *outcomes) bool {
	op := w.ring.Claim()
	if op == nil {
		return false
	}
	const count = 60
	deltas := make([]byte, 8*count)
	for i := range count {
		deltas[8*i] = 1
	}
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), o, residentKey, 0, count
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0
	op.SetOperands(deltas, nil)
	op.Result = make([]byte, 8*count)
	op.Publish()
	return true
}
