// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

var frames = flag.Int("frames", 1000, "random frames that each sort of session gets")

// supported reports whether there is such an operation.
func supported(rec *wire.Record) bool {
	return atomic.Valid(memory.FormOf(rec.Verb), atomic.Op(rec.Op), atomic.Datatype(rec.Datatype))
}

// maker makes random frames for a twin.
type maker struct {
	*rand.Rand
	w    *twin
	last [][]byte // frames made before
	mode int      // changes now and then: bits of the constants below
}

const (
	withoutAcks    = 1 << iota // the initiator acknowledges nothing, so that the window fills
	withoutResults             // all operations are of the base form, so that acks answer them
	beyondRoom                 // more results than a frame holds
)

// one reports true once in n times.
func (m *maker) one(n int) bool { return m.IntN(n) == 0 }

// record makes a random record, most often of one that can be executed.
func (m *maker) record() wire.Record {
	i := 0
	if m.one(3) {
		i = m.IntN(len(twinRegions))
	}
	rec := wire.Record{Verb: wire.Verb(1 + m.IntN(3)), Datatype: uint8(m.IntN(8)), Key: twinRegions[i].key, Count: 1}
	if m.mode&withoutResults != 0 {
		rec.Verb, rec.Key, i = wire.VerbAtomic, twinRegions[0].key, 0
	}
	if m.mode&beyondRoom != 0 && m.one(2) {
		rec.Verb = wire.VerbFetch
	}
	for rec.Op = uint8(m.IntN(atomic.NumOps)); !supported(&rec); {
		rec.Op = uint8(m.IntN(atomic.NumOps))
	}
	size := wire.ElemSize(rec.Datatype)
	if m.one(4) {
		rec.Count = uint32(1 + m.IntN(12))
	}
	if m.one(50) {
		rec.Count = uint32(1 + m.IntN(1500))
	}
	if m.mode&beyondRoom != 0 && rec.Verb == wire.VerbFetch && !m.one(3) {
		rec.Op, rec.Count = wire.OpRead, uint32(m.IntN(m.w.params.MaxFrame/size)+1)
	}
	rec.Total = rec.Count
	if m.one(20) {
		rec.Total += uint32(m.IntN(100))
	}
	rec.Offset = uint64(m.IntN(twinRegions[i].size)) &^ uint64(size-1)
	if rec.Count > 12 && !m.one(4) {
		rec.Offset = 0
	}
	if m.one(30) && m.mode&withoutResults == 0 {
		rec.Offset = m.Uint64() >> m.IntN(64)
	}
	rec.Offset += m.w.base[i]
	switch m.IntN(100) {
	case 0:
		rec.Incarnation = m.Uint32()
	case 1:
		rec.Key = strangerKey
	case 2, 3, 4, 5:
		rec.Incarnation = m.w.born[i]
	}
	n := int(rec.Count) * size
	if rec.Op != wire.OpRead {
		rec.Operand = m.bytes(n)
	}
	if rec.Verb == wire.VerbCompare {
		rec.Compare = m.bytes(n)
	}
	return rec
}

// bytes makes operands, most often of small numbers, so that comparisons come out equal.
func (m *maker) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		switch m.IntN(4) {
		case 0:
			b[i] = byte(m.Uint32())
		case 1:
			b[i] = 0xff
		}
	}
	return b
}

// payload packs records, often alike, so that they become runs.
func (m *maker) payload() (b []byte, ops int) {
	room := m.w.params.MaxFrame - wire.HeaderLen
	b = make([]byte, room)
	var rw wire.RecordWriter
	if m.mode&beyondRoom != 0 {
		rw.Reset(b, 4*room)
	} else {
		rw.Reset(b, room)
	}
	for range 1 + m.IntN(6) {
		rec := m.record()
		for range 1 + m.IntN(4)*m.IntN(60) {
			if !rw.Append(&rec) {
				break
			}
			if m.one(2) {
				rec.Offset = m.w.base[0] + uint64(m.IntN(500))*8
			}
		}
	}
	if rw.Ops() == 0 {
		return m.payload()
	}
	return b[:rw.Len()], rw.Ops()
}

// frame makes a frame: the next request, most often.
func (m *maker) frame() []byte {
	if m.one(100) {
		m.mode = m.IntN(8)
	}
	if len(m.last) > 0 && m.one(5) {
		return m.last[m.IntN(len(m.last))]
	}
	s := m.w.state()
	h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Freed + m.Uint32N(s.Expected-s.Freed), Lane: uint8(m.IntN(64))}
	if m.one(3) || m.mode&withoutAcks != 0 && !m.one(100) {
		h.Ack = s.Freed
	}
	switch m.IntN(40) {
	case 0, 1, 2:
		h.PSN += m.Uint32N(80) - 40
	case 3:
		h.PSN = m.Uint32()
		if m.one(2) { // neither ahead nor behind
			h.PSN = s.Freed + 1<<31 + m.Uint32N(5) - 2
		}
	case 4:
		h.Ack = m.Uint32()
	case 5:
		h.Session ^= 1 << m.IntN(32)
	case 6:
		h.Epoch ^= 1 << m.IntN(32)
	case 7, 8:
		h.Type, h.PSN, h.Flags = wire.Probe, m.Uint32N(1000), wire.FlagEcho*uint8(m.IntN(2))
	case 9:
		h.Type = wire.Ack
	case 10:
		h.Type = wire.Type(m.IntN(16))
	case 11:
		h.Flags = 1 << m.IntN(8)
	case 12, 13:
		h.Flags = wire.FlagRetx
	}
	if s.Unordered != 0 && m.one(3) {
		h.PSN += m.Uint32N(64)
	}
	b := make([]byte, 4096)
	n := wire.HeaderLen
	if h.Type == wire.Request {
		if m.one(3) {
			h.Flags |= wire.FlagDelay // which the program has no use for
		}
		payload, ops := m.payload()
		h.Ops = uint8(ops)
		n += copy(b[n:], payload)
		if room := m.w.params.MaxFrame - n - 2; room >= 0 && m.one(5) {
			long := n + 2 + m.IntN(room+1)
			h.Flags |= wire.FlagPadded
			wire.Pad(b[wire.HeaderLen:], n-wire.HeaderLen, long-wire.HeaderLen)
			n = long
		}
	}
	if m.one(60) {
		h.Ops = uint8(m.IntN(256))
	}
	if m.one(60) {
		n = min(n+m.IntN(40), m.w.params.MaxFrame)
	}
	h.Put(b)
	if n > wire.HeaderLen && m.one(25) { // an impossible count, flag or offset
		binary.LittleEndian.PutUint32(b[wire.HeaderLen+4*m.IntN((n-wire.HeaderLen+3)/4):], m.Uint32N(4))
	}
	for m.one(8) { // damage that the checksum does not tell
		b[m.IntN(n)] ^= 1 << m.IntN(8)
	}
	b = b[:wire.Seal(b, n)]
	if m.one(50) { // damage that it tells
		b[m.IntN(len(b))] ^= 1 << m.IntN(8)
	}
	if m.last = append(m.last, b); len(m.last) > 80 {
		m.last = m.last[1:]
	}
	return b
}

// settings are all sorts of sessions.
func settings() (list []setting) {
	for kind := range wire.NumKinds {
		for _, vlan := range []uint16{0, 7} {
			for _, unordered := range []bool{false, true} {
				for _, sockets := range []bool{false, true} {
					s := setting{kind: kind, vlan: vlan, unordered: unordered, sockets: sockets, frame: 1500 - kind.Overhead()}
					if unordered {
						s.class = wire.Class{DSCP: 46, PCP: 5}
						s.frame = 208
					}
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// pairs are the numbers of a few settings in which any two values of two kinds meet.
func pairs() []int {
	return []int{0b000, 0b111, 8 + 0b110, 8 + 0b001, 16 + 0b101, 16 + 0b010}
}

func TestPairs(t *testing.T) {
	type two [4]int // places of two values, and the values
	all, met := map[two]bool{}, map[two]bool{}
	for i := range settings() {
		v := [...]int{i / 8, i / 4 % 2, i / 2 % 2, i % 2}
		for a := range v {
			for b := range a {
				all[two{a, b, v[a], v[b]}] = true
				if slices.Contains(pairs(), i) {
					met[two{a, b, v[a], v[b]}] = true
				}
			}
		}
	}
	if len(met) != len(all) {
		t.Errorf("%d pairs of values of %d meet", len(met), len(all))
	}
}

// The program and the executor in Go give the same answers to the same frames, and leave
// the same state and memory: frames that are right, damaged, repeated, early, late, and
// of others. The kernel verifies the program for each setting, which is most of the work.
func TestDifferential(t *testing.T) {
	for i, o := range settings() {
		if testing.Short() && !slices.Contains(pairs(), i) {
			continue
		}
		t.Run(fmt.Sprintf("%v vlan %d unordered %t sockets %t", o.kind, o.vlan, o.unordered, o.sockets), func(t *testing.T) {
			w := newTwin(t, o)
			m := &maker{Rand: rand.New(rand.NewPCG(uint64(i), 42)), w: w}
			n := *frames
			if testing.Short() {
				n = min(n, 40)
			}
			for range n {
				w.send(m.frame())
			}
			if s := w.state(); s.Frames < uint64(n)/20 {
				t.Errorf("only %d of %d frames ran", s.Frames, n)
			} else {
				t.Logf("%d frames of %d operations ran", s.Frames, s.Ops)
			}
		})
	}
}

// A full window of frames that have no results is answered by one ack, whichever of them
// comes again.
func TestFullWindow(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	s := w.state()
	var sent [session.MaxWindow][]byte
	for i := range sent {
		b := make([]byte, 1500)
		h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected + uint32(i), Ack: s.Freed, Ops: 1}
		h.Put(b)
		rec := wire.Record{Verb: wire.VerbAtomic, Op: uint8(atomic.Sum), Datatype: 7, Key: twinRegions[0].key, Count: 1, Operand: []byte{1, 0, 0, 0, 0, 0, 0, 0}}
		var rw wire.RecordWriter
		if rw.Reset(b[wire.HeaderLen:], 1400); !rw.Append(&rec) {
			t.Fatal("no room")
		}
		sent[i] = b[:wire.Seal(b, wire.HeaderLen+rw.Len())]
		w.send(sent[i])
	}
	for _, frame := range sent {
		w.send(frame)
	}
	if got := w.state(); got.Frames != session.MaxWindow {
		t.Errorf("%d frames ran, want %d", got.Frames, session.MaxWindow)
	}
}

// Any payload has the same effect on both, whether it is well formed or not.
func FuzzPayload(f *testing.F) {
	w := newTwin(f, setting{kind: wire.Ethernet, frame: 1500})
	m := &maker{Rand: rand.New(rand.NewPCG(1, 2)), w: w}
	for range 40 {
		b, ops := m.payload()
		f.Add(uint8(ops), b)
	}
	f.Fuzz(func(t *testing.T, ops uint8, payload []byte) {
		w.t = t
		s := w.state()
		if len(payload) > w.params.MaxFrame-wire.HeaderLen {
			return
		}
		h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Expected - 1, Ops: ops}
		b := make([]byte, session.MinFrame+len(payload))
		h.Put(b)
		w.send(b[:wire.Seal(b, wire.HeaderLen+copy(b[wire.HeaderLen:], payload))])
	})
}
