// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// BenchmarkProgram measures what one packet costs, with the system call that brings it: a
// probe, which does nearly nothing, a request that has run before, and one that runs.
func BenchmarkProgram(b *testing.B) {
	for _, ops := range []int{0, 1, 60, 182} {
		for _, dup := range []bool{false, true} {
			for _, dt := range []atomic.Datatype{atomic.Uint64, atomic.Uint8} {
				if ops == 0 && (dup || dt == atomic.Uint8) || dt == atomic.Uint8 && (ops == 182 || dup) {
					continue
				}
				name := fmt.Sprintf("%d operations, %v, again %t", ops, dt, dup)
				if ops == 0 {
					name = "probe"
				}
				b.Run(name, func(b *testing.B) { benchProgram(b, ops, dt, dup) })
			}
		}
	}
}

func benchProgram(b *testing.B, ops int, dt atomic.Datatype, dup bool) {
	w := newTwin(b, setting{kind: wire.Ethernet, frame: 1500})
	packet, s := make([]byte, 1600), w.state()
	frame := packet[w.there.Len():]
	var rw wire.RecordWriter
	rw.Reset(frame[wire.HeaderLen:], 1466)
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for i := range ops {
		if !rw.Append(&wire.Record{Verb: wire.VerbFetch, Op: uint8(atomic.Sum), Datatype: uint8(dt), Key: twinRegions[0].key, Offset: uint64(i * 8), Count: 1, Operand: one[:dt.Size()]}) {
			b.Fatal("no room")
		}
	}
	h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Freed, Ops: uint8(ops)}
	if ops == 0 {
		h.Type = wire.Probe
	}
	var attr testRun
	out := make([]byte, 2048)
	var took, inside []time.Duration
	run := func() {
		h.Put(frame)
		n := w.there.Put(packet, wire.Seal(frame, wire.HeaderLen+rw.Len()))
		began := time.Now()
		action, answer, err := runOnce(&attr, w.x.Program().FD(), packet[:n], out)
		took, inside = append(took, time.Since(began)), append(inside, time.Duration(attr.duration))
		if err != nil || action != xdpTX || binary.LittleEndian.Uint32(packetOf(action, answer)[w.back.Len()+10:]) == 0 {
			b.Fatalf("action %d, %v", action, err)
		}
	}
	run()
	for b.Loop() {
		if !dup {
			h.PSN++
		}
		if !dup && ops > 0 {
			h.Ack++
		}
		run()
	}
	slices.Sort(took)
	slices.Sort(inside)
	b.ReportMetric(float64(inside[len(inside)/10].Nanoseconds()), "p10-program-ns") // without the system call
	b.ReportMetric(float64(took[len(took)/10].Nanoseconds()), "p10-ns")             // what others take of the machine is not in it
}
