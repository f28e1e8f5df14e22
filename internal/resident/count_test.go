// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// tallied is what both executors count on a region, and its twin.
type tallied struct {
	is   *Count
	want *Touched
}

// observe has both count.
func observe(t testing.TB, x *Executor, region *mr.Region) tallied {
	t.Helper()
	c, err := x.Count(region.Key())
	if err != nil {
		t.Fatal(err)
	}
	a := tallied{c, &Touched{}}
	if !region.Observe(a) {
		t.Fatal("the twin of a region has an observer already")
	}
	return a
}

// Touched implements mr.Observer.
func (a tallied) Touched(reads, writes, bytesRead, bytesWritten int) {
	a.want.Reads += uint64(reads)
	a.want.Writes += uint64(writes)
	a.want.BytesRead += uint64(bytesRead)
	a.want.BytesWritten += uint64(bytesWritten)
}

// Closed implements mr.Observer.
func (a tallied) Closed() {}

// fetches returns a frame that adds 1 to so many words of the twins' first region.
func (w *twin) fetches(psn uint32, n int) []byte {
	frame := make([]byte, 1600)
	var rw wire.RecordWriter
	rw.Reset(frame[wire.HeaderLen:], 1466)
	for i := range n {
		rw.Append(&wire.Record{Verb: wire.VerbFetch, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Key: twinRegions[0].key,
			Offset: uint64(i * 8), Count: 1, Operand: binary.LittleEndian.AppendUint64(nil, 1)})
	}
	s := w.state()
	h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: psn, Ack: s.Freed, Ops: uint8(n)}
	h.Put(frame)
	return frame[:wire.Seal(frame, wire.HeaderLen+rw.Len())]
}

// The program tells of an operation once for each time that it is armed, and not of a
// duplicate; what it has counted is there by then The end of a region ends its count.
func TestTouchIsTold(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	told := make(chan Touched, 8)
	c := w.tallies[0].is
	stop, err := w.x.OnTouch(func() { told <- c.Now() })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	first := w.state().Expected
	w.send(w.fetches(first, 3)) // it is not armed
	c.Arm()
	w.send(w.fetches(first, 3)) // again
	for i := range uint32(2) {  // of two frames, one is told
		w.send(w.fetches(first+1+i, 4))
	}
	if got := <-told; got.Reads < 7 || got.Reads > 11 || got.BytesRead != 8*got.Reads {
		t.Errorf("told of %+v, want 7 or 11 reads of 8 bytes", got)
	}
	c.Arm()
	w.send(w.fetches(first+3, 1))
	if got, want := <-told, (Touched{Reads: 12, BytesRead: 96}); got != want {
		t.Errorf("told of %+v, want %+v", got, want)
	}
	if len(told) > 0 {
		t.Errorf("told of %+v, though it was armed twice", <-told)
	}
	if err := w.x.Deregister(twinRegions[0].key); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Now(), (Touched{Reads: 12, BytesRead: 96}); got != want {
		t.Errorf("after the end %+v, want %+v", got, want)
	}
	if _, err := w.x.Count(twinRegions[0].key); err == nil {
		t.Error("a region that is gone is counted")
	}
}
