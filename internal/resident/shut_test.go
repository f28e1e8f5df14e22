// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// served returns the handle of a twin's session in the program.
func (w *twin) served() *Session {
	w.t.Helper()
	v, err := w.x.NewServer(w.mem, 0, func() int64 { return w.now })
	if err != nil {
		w.t.Fatal(err)
	}
	s := w.state()
	return v.adopt(w.now, w.params, w.place, &s)
}

// If the program does not obey, no packet gets to it, and what was told stays true.
func TestProgramDoesNotObey(t *testing.T) {
	for name, end := range map[string]func(*Session){
		"freeze":   func(s *Session) { s.Freeze(1, s.Acked()) },
		"shutdown": func(s *Session) { s.Shutdown(wire.ResetClosed) },
		"release":  func(s *Session) { s.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
			var why []error
			w.x.OnStuck(func(err error) { why = append(why, err) })
			s, state := w.served(), w.state()
			s.v.c.tries = 3
			locked := state
			locked.Lock = 1 // by a CPU that never ends
			if err := w.x.objects.Sessions.Put(w.place, &locked); err != nil {
				t.Fatal(err)
			}
			end(s)
			end(s)
			if len(why) != 1 || why[0] == nil {
				t.Errorf("told %v, want one reason", why)
			}
			if err := w.x.objects.Sessions.Put(w.place, &state); err != nil {
				t.Fatal(err)
			}
			h, payload, _ := wire.Parse(fetchAdd(&state, 0))
			if o := s.Receive(2, &h, payload, nil); o.Verdict == session.Execute || w.state().Frames != state.Frames {
				t.Errorf("verdict %v: a frame ran", o.Verdict)
			}
		})
	}
}

// An array that was changed in part is not told as not executed: the session is
// forgotten, so that the outcome is unknown.
func TestArrayInPart(t *testing.T) {
	for name, c := range map[string]struct {
		op     atomic.Op
		offset uint64
		torn   bool
	}{
		"sum":                        {atomic.Sum, 4080, true},
		"minimum":                    {atomic.Min, 4080, true},
		"read":                       {atomic.Read, 4080, false},
		"from the missing memory on": {atomic.Sum, 4096, false},
	} {
		for _, packet := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", packet", false: ", call"}[packet], func(t *testing.T) {
				w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
				s, state := w.served(), w.state()
				var r executorRegion
				if err := w.x.objects.Regions.Lookup(twinRegions[0].key, &r); err != nil {
					t.Fatal(err)
				}
				r.Length = 8192 // of which the second half has no memory
				if err := w.x.objects.Regions.Put(twinRegions[0].key, &r); err != nil {
					t.Fatal(err)
				}
				frame := arrayOf(&state, c.op, c.offset, 4)
				if packet {
					w.run(frame)
				}
				h, payload, _ := wire.Parse(frame)
				o := s.Receive(2, &h, payload, nil)
				if torn := o.Verdict == session.Gone; torn != c.torn || s.Ran().Torn != c.torn || s.Freeze(2, s.Acked()).Torn != c.torn {
					t.Errorf("verdict %v, ran %+v; want torn: %t", o.Verdict, s.Ran(), c.torn)
				}
				if c.torn {
					if n := w.state().Frames; n != state.Frames {
						t.Errorf("%d frames have run", n-state.Frames)
					}
					s.Shutdown(wire.ResetClosed)
					b := make([]byte, 1500)
					var m wire.ResetMsg
					for _, payload, _ := wire.Parse(b[:wire.Seal(b, s.Emit(b))]); m.Parse(payload) != wire.ReasonOK; {
						_, payload, _ = wire.Parse(b[:wire.Seal(b, s.Emit(b))])
					}
					if m.Reason != wire.ResetUnknownSession {
						t.Errorf("a reset with reason %v says what ran", m.Reason)
					}
				}
				s.Release()
			})
		}
	}
}

// arrayOf returns the frame, whose turn is next, of an operation on n elements.
func arrayOf(s *executorSession, op atomic.Op, offset uint64, n int) []byte {
	b := make([]byte, 1500)
	operand := make([]byte, 0, 8*n)
	for i := range n {
		operand = binary.LittleEndian.AppendUint64(operand, uint64(i+1))
	}
	rec := wire.Record{Verb: wire.VerbFetch, Op: uint8(op), Datatype: uint8(atomic.Uint64), Key: twinRegions[0].key, Offset: offset, Count: uint32(n), Total: uint32(n)}
	if op != atomic.Read {
		rec.Operand = operand
	}
	var rw wire.RecordWriter
	rw.Reset(b[wire.HeaderLen:], 1400)
	rw.Append(&rec)
	h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Expected - 1, Ops: uint8(rw.Ops())}
	h.Put(b)
	return b[:wire.Seal(b, wire.HeaderLen+rw.Len())]
}
