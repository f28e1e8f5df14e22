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

// FuzzEngine drives two engines with any sequence of operations, packets and time, and
// with calls: packets of before once more, packets with fields changed and the checksum
// made right again (a peer that lies), packets of arbitrary bytes. Nothing may panic;
// every operation completes once; at the end no buffer, session or ring entry is left
// behind.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 0, 1, 2, 0, 0, 1, 3, 0, 0, 10, 1, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 1, 1, 1, 1, 1, 3, 1, 0, 0, 5, 0, 0, 0, 1, 1, 3, 0, 1, 28, 200, 0, 0, 0, 1, 1})
	f.Add([]byte{0, 1, 1, 1, 5, 200, 0, 1, 1, 4, 0, 60, 2, 0, 0, 0, 0, 11, 2, 0, 0, 0, 0, 10, 0x88, 0xb5, 0x11, 0})
	f.Add([]byte{0, 1, 1, 1, 1, 1, 6, 0, 1, 1, 0, 1, 1, 7, 1, 0, 1, 1, 1})
	// Calls: answered; of the longest request, refused for want of room, and behind
	// others; that the caller lets go; of a target that restarts; of one that is asked
	// again, and answers.
	f.Add([]byte{240, 8, 8, 1, 1, 1, 1, 241, 8, 0, 1, 1, 1, 240, 0, 0, 1, 1, 241, 255, 1, 1, 1})
	f.Add([]byte{0, 240, 255, 255, 0, 240, 1, 255, 240, 2, 0, 240, 3, 1, 240, 4, 4, 240, 5, 5, 1, 1, 1, 1, 1, 1, 1, 1, 241, 0, 2, 1, 241, 9, 0, 1, 1, 1})
	f.Add([]byte{240, 8, 8, 1, 1, 1, 9, 0, 1, 241, 4, 0, 1, 240, 8, 8, 1, 1, 6, 0, 1, 241, 4, 0, 1, 1})
	f.Add([]byte{240, 8, 8, 240, 8, 8, 1, 1, 1, 1, 241, 8, 0, 7, 0, 1, 1, 7, 1, 240, 8, 8, 1, 1, 1, 1, 241, 8, 0, 1, 1})
	f.Add([]byte{240, 8, 8, 1, 1, 1, 2, 1, 2, 1, 2, 1, 3, 1, 1, 1, 40, 1, 0, 0, 0, 1, 241, 8, 0, 2, 1, 2, 1, 2, 5, 255, 1, 1, 1})
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
			w.answer(4, 0)
		}
		w.check()
	})
}

// act does the next thing that the script asks for.
func (w *world) act(s *script) {
	switch what := s.byte(); {
	case what == 240:
		w.call(int(s.byte()), int(s.byte()))
		return
	case what == 241:
		w.answer(int(s.byte()), s.byte())
		return
	default:
		w.actOther(s, what%10)
	}
}

// actOther is act for all but calls.
func (w *world) actOther(s *script, what byte) {
	switch what {
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
