// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// script reads actions from fuzzed bytes; at the end it reads zeros.
type script struct{ data []byte }

func (s *script) byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *script) uint32() uint32 {
	return uint32(s.byte()) | uint32(s.byte())<<8 | uint32(s.byte())<<16 | uint32(s.byte())<<24
}

func (s *script) bytes(n int) []byte {
	n = min(n, len(s.data))
	b := s.data[:n]
	s.data = s.data[n:]
	return b
}

// FuzzEngine drives two engines with any sequence of operations, packets and
// time: packets of before once more, packets with fields changed and the checksum
// made right again (a peer that lies), packets of arbitrary bytes. Nothing may
// panic; every operation completes once; at the end no buffer, session or ring
// entry is left behind.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 0, 1, 2, 0, 0, 1, 3, 0, 0, 10, 1, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 1, 1, 1, 1, 1, 3, 1, 0, 0, 5, 0, 0, 0, 1, 1, 3, 0, 1, 28, 200, 0, 0, 0, 1, 1})
	f.Add([]byte{0, 1, 1, 1, 5, 200, 0, 1, 1, 4, 0, 60, 2, 0, 0, 0, 0, 11, 2, 0, 0, 0, 0, 10, 0x88, 0xb5, 0x11, 0})
	f.Add([]byte{0, 1, 1, 1, 1, 1, 6, 0, 1, 1, 0, 1, 1, 7, 1, 0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t, uint64(len(data)), false)
		s := &script{data: data}
		for steps := 0; len(s.data) > 0 && steps < 2000; steps++ {
			w.act(s)
		}
		for range 100_000 {
			if w.pending() == 0 {
				break
			}
			w.step()
			w.receive()
		}
		w.check()
	})
}

// act does the next thing that the script asks for.
func (w *world) act(s *script) {
	switch s.byte() % 10 {
	case 0:
		w.post()
	case 1:
		w.step()
	case 2: // a packet of before
		w.inject(s, func(b []byte) []byte { return b })
	case 3: // a changed field
		w.inject(s, func(b []byte) []byte {
			frame := b[14:]
			at := int(s.byte()) % (len(frame) - 4)
			binary.LittleEndian.PutUint32(frame[at:], binary.LittleEndian.Uint32(frame[at:])+s.uint32())
			wire.Seal(frame, len(frame))
			return b
		})
	case 4: // anything
		side := int(s.byte()) & 1
		w.ports[side].inject = append(w.ports[side].inject, slices.Clone(s.bytes(int(s.byte()))))
	case 5:
		w.now += int64(s.byte()) * int64(10*time.Millisecond)
	case 6:
		w.peers[int(s.byte())%len(w.peers)].Close()
	case 7: // the target restarts, in order or not
		if s.byte()&1 == 0 {
			w.eng[1].Close()
			w.step()
		}
		w.mem.Close()
		w.start(1)
	case 8:
		w.receive()
	case 9:
		w.peers[int(s.byte())%len(w.peers)].Cancel(w.anyOp())
	}
}

// inject delivers an earlier packet to the side that it went to, changed by edit.
func (w *world) inject(s *script, edit func(b []byte) []byte) {
	side, which := int(s.byte())&1, int(s.byte())
	if seen := w.seen[side]; len(seen) > 0 {
		w.ports[side].inject = append(w.ports[side].inject, edit(slices.Clone(seen[which%len(seen)])))
	}
}
