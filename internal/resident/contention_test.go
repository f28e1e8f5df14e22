// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"

	element "github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Every frame of a session arrives at two CPUs at a time, while the owner of the memory
// adds to the same words by itself: every operation runs once.
func TestContention(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	words := w.words[0]
	clear(words)
	const rounds = 3000
	sizes := []uint8{1, 3, 5, 7} // uint8 … uint64, of one word of 8 bytes each
	var b [1500]byte
	var rw wire.RecordWriter
	rw.Reset(b[wire.HeaderLen:], 1400)
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for i, dt := range sizes {
		rec := wire.Record{Verb: wire.VerbFetch, Op: 2, Datatype: dt, Key: twinRegions[0].key, Offset: uint64(16 * i), Count: 1, Operand: one[:wire.ElemSize(dt)]}
		if !rw.Append(&rec) {
			t.Fatal("no room")
		}
	}
	s := w.state()
	var stop atomic.Bool
	var own uint64
	var side sync.WaitGroup
	side.Go(func() {
		for !stop.Load() {
			if err := element.Apply(element.Base, element.Sum, element.Uint64, words[48:], one, nil, nil, 1); err != nil {
				t.Error(err)
				return
			}
			own++
		}
	})
	for i := range uint32(rounds) {
		h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected + i, Ack: s.Expected + i - 1, Ops: uint8(rw.Ops())}
		h.Put(b[:])
		n := wire.Seal(b[:], wire.HeaderLen+rw.Len())
		packet := make([]byte, 1600)
		copy(packet[w.there.Len():], b[:n])
		packet = packet[:w.there.Put(packet, n)]
		var answers [2][]byte
		var pair sync.WaitGroup
		for k := range answers {
			pair.Go(func() {
				for answers[k] == nil {
					opts := ebpf.RunOptions{Data: packet, DataOut: make([]byte, 2048)}
					action, err := w.x.Program().Run(&opts)
					if err != nil {
						t.Error(err)
						return
					}
					if action == xdpTX { // otherwise the other one was at the session, or at this CPU
						answers[k] = packetOf(action, opts.DataOut)
					}
				}
			})
		}
		pair.Wait()
		if string(answers[0]) != string(answers[1]) {
			t.Fatalf("two answers to one frame\n%x\n%x", answers[0], answers[1])
		}
	}
	stop.Store(true)
	side.Wait()
	le := binary.LittleEndian
	for i, want := range []uint64{rounds & 0xff, rounds & 0xffff, rounds, rounds + own} {
		if got := le.Uint64(words[16*i:]); got != want {
			t.Errorf("word %d is %d, want %d", i, got, want)
		}
	}
	if got := w.state(); got.Frames != rounds || got.Lock != 0 {
		t.Errorf("%+v, want %d frames", got, rounds)
	}
}
