// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// asker is a port with an initiator in miniature at its other end, whose frames cost next
// to nothing, so that a benchmark measures the target's side.
type asker struct {
	to      wire.Template
	packets [][]byte // received by the engine next
	answers [][]byte // of the engine, kept while learning is set
	learn   bool
	buffer  [2048]byte
}

func (a *asker) Receive(packets [][]byte) int {
	n := copy(packets, a.packets)
	a.packets = a.packets[n:]
	return n
}

func (a *asker) Release()           {}
func (a *asker) Buffer() []byte     { return a.buffer[:] }
func (a *asker) Flush() error       { return nil }
func (a *asker) Wait(time.Duration) {}
func (a *asker) Wake()              {}

func (a *asker) Send(n int) {
	if a.learn {
		a.answers = append(a.answers, append([]byte(nil), a.buffer[:n]...))
	}
}

// packet makes a packet of a frame.
func (a *asker) packet(b []byte, h wire.Header, payload []byte) []byte {
	frame := b[a.to.Len():]
	h.Put(frame)
	return b[:a.to.Put(b, wire.Seal(frame, wire.HeaderLen+copy(frame[wire.HeaderLen:], payload)))]
}

// ask delivers a packet and returns the frame that comes back.
func (a *asker) ask(t testing.TB, n *node, h wire.Header, payload []byte) (wire.Header, []byte) {
	t.Helper()
	a.packets, a.answers, a.learn = [][]byte{a.packet(make([]byte, 2048), h, payload)}, nil, true
	n.Step()
	a.learn = false
	if len(a.answers) != 1 {
		t.Fatalf("%d answers, want one", len(a.answers))
	}
	frame, _ := wire.Strip(a.answers[0], macA, false)
	back, payload, reason := wire.Parse(frame)
	if reason != wire.ReasonOK {
		t.Fatal(reason)
	}
	return back, payload
}

// open begins a session and returns the header of its first request.
func (a *asker) open(t testing.TB, n *node) wire.Header {
	t.Helper()
	hello := wire.HelloMsg{Nonce: 1, Session: uint32(wire.NewSessionID(0, 0, 1, 1)), MaxFrame: 1500, Window: 64, Keep: 90, Origin: 5, Serial: 1}
	payload := make([]byte, wire.HelloLen)
	h := wire.Header{Type: wire.Hello, Session: wire.HelloSession(0)}
	var ack wire.HelloAckMsg
	for range 2 {
		hello.Put(payload)
		back, answer := a.ask(t, n, h, payload)
		if ack.Parse(answer) != wire.ReasonOK {
			t.Fatal("no hello-ack")
		}
		hello.Cookie = ack.Cookie
		h.Epoch = back.Epoch
	}
	if ack.Status != wire.HelloAccepted {
		t.Fatal(ack.Status)
	}
	first := session.FirstPSN(h.Epoch)
	return wire.Header{Type: wire.Request, Session: ack.Session, Epoch: h.Epoch, PSN: first, Ack: first - 1, Credit: 64}
}

// The way of a request at the target, from a burst of the port to the flush of its
// answers.
func BenchmarkAnswer(b *testing.B) {
	for _, c := range []struct {
		burst, ops int
		verb       wire.Verb
	}{{1, 1, wire.VerbFetch}, {32, 1, wire.VerbFetch}, {32, 1, wire.VerbAtomic}, {32, 150, wire.VerbFetch}} {
		b.Run(fmt.Sprintf("burst=%d/ops=%d/verb=%d", c.burst, c.ops, c.verb), func(b *testing.B) {
			to, err := wire.NewTemplate(wire.Link{Local: macA, Remote: macB})
			if err != nil {
				b.Fatal(err)
			}
			bn := &bench{t: b, now: 1, mtu: 1500}
			a := &asker{to: to}
			bn.b = bn.node(a, macB, session.Config{})
			bn.region(1, 1<<12, mr.RemoteRead|mr.RemoteWrite)
			h := a.open(b, bn.b)
			var w wire.RecordWriter
			payload := make([]byte, 1400)
			w.Reset(payload, len(payload))
			for i := range c.ops {
				w.Append(&wire.Record{Verb: c.verb, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Key: 1, Offset: uint64(8 * i), Count: 1, Total: 1, Operand: []byte{1, 0, 0, 0, 0, 0, 0, 0}})
			}
			h.Ops, payload = uint8(w.Ops()), payload[:w.Len()]
			room := make([][]byte, c.burst)
			for i := range room {
				room[i] = make([]byte, 2048)
			}
			packets := make([][]byte, c.burst)
			b.ReportAllocs()
			for b.Loop() {
				for i := range room {
					packets[i] = a.packet(room[i], h, payload)
					h.PSN++
				}
				h.Ack = h.PSN - 1
				a.packets = packets
				bn.b.Step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.burst), "ns/frame")
			bn.b.Publish()
			if c := bn.b.Counters(); c[engine.RequestsExecuted] != uint64(b.N*len(room)) {
				b.Fatalf("%d frames ran, want %d", c[engine.RequestsExecuted], b.N*len(room))
			}
		})
	}
}
