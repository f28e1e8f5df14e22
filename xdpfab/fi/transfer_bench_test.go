// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// side is one of two endpoints that send each other messages.
type side struct {
	dom   *xdpfab.Domain
	ep    *fi.Endpoint
	cq    *fi.CompletionQueue
	peer  fi.Address
	batch []fi.Completion
}

// newSides returns two sides, on one thread; the memory of the second one has the key 1.
func newSides(b testing.TB, memory int) (sides [2]*side) {
	b.Helper()
	one, other, err := xdpfab.Pipe(fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = one.CloseAll(), other.CloseAll() })
	return sidesOf(b, one, other, memory)
}

// sidesOf returns two sides on two domains that are joined.
func sidesOf(b testing.TB, one, other *xdpfab.Domain, memory int) (sides [2]*side) {
	b.Helper()
	mem, err := mr.Alloc(memory, mr.AllocOptions{})
	if err != nil {
		b.Fatal(err)
	}
	key := uint64(1)
	if _, err := other.Register(mem, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		b.Fatal(err)
	}
	for i, dom := range []*xdpfab.Domain{one, other} {
		s := &side{dom: dom, batch: make([]fi.Completion, 256)}
		av, _ := dom.NewAddressVector()
		s.cq, _ = dom.NewCompletionQueue(fi.CQAttr{Size: 256})
		s.ep, _ = dom.NewEndpoint(fi.EndpointAttr{})
		if err := errors.Join(s.ep.Bind(av, 0), s.ep.Bind(s.cq, fi.BindTransmit|fi.BindRecv), s.ep.Enable()); err != nil {
			b.Fatal(err)
		}
		if s.peer, err = av.Insert(context.Background(), [2]*xdpfab.Domain{other, one}[i].Name(0)); err != nil {
			b.Fatal(err)
		}
		sides[i] = s
	}
	return sides
}

// collect takes completions, and returns how many sends and receives there were.
func (s *side) collect(b testing.TB) (sent, received int) {
	n, err := s.cq.Read(s.batch)
	if err != nil {
		b.Fatal(err)
	}
	for i := range s.batch[:n] {
		if s.batch[i].Flags&fi.CompletionRecv != 0 {
			received++
		} else {
			sent++
		}
	}
	return sent, received
}

// trip sends a message there and back.
func trip(b testing.TB, sides [2]*side, m *fi.Message, r *fi.Receive) {
	for i, s := range sides {
		to := sides[1-i]
		m.Dest = s.peer
		if err := errors.Join(to.ep.ReceiveTagged(r, 0), s.ep.SendTagged(m, 0)); err != nil {
			b.Fatal(err)
		}
		for done := false; !done; {
			s.collect(b)
			_, n := to.collect(b)
			done = n > 0
		}
	}
}

// A message of 8 bytes there and back, both sides on one thread: what a round trip costs
// beside the kernel.
func BenchmarkMessageTrip(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	benchmarkMessageTrip(b, newSides(b, 4096))
}

func benchmarkMessageTrip(b *testing.B, sides [2]*side) {
	message, receive := fi.Message{Buf: make([]byte, 8)}, fi.Receive{Buf: make([]byte, 8)}
	b.ReportAllocs()
	start := cpu()
	for b.Loop() {
		trip(b, sides, &message, &receive)
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}

// Messages of 4 KiB, up to 64 on the way, both sides on one thread.
func BenchmarkMessageStream(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	benchmarkMessageStream(b, newSides(b, 4096))
}

func benchmarkMessageStream(b *testing.B, sides [2]*side) {
	const window, size = 64, 4096
	from, to := sides[0], sides[1]
	message, receive := fi.Message{Buf: make([]byte, size), Dest: from.peer}, fi.Receive{Buf: make([]byte, size)}
	b.SetBytes(size)
	b.ReportAllocs()
	var posted, arrived, flying, waiting int
	start := cpu()
	b.ResetTimer()
	for arrived < b.N {
		for ; waiting < window; waiting++ {
			if err := to.ep.ReceiveTagged(&receive, 0); err != nil {
				b.Fatal(err)
			}
		}
		for ; flying < window && posted-arrived < window && posted < b.N; flying++ {
			if err := from.ep.SendTagged(&message, 0); err != nil {
				b.Fatal(err)
			}
			posted++
		}
		sent, _ := from.collect(b)
		_, received := to.collect(b)
		flying, arrived, waiting = flying-sent, arrived+received, waiting-received
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}

// Writes of 1 MiB, eight at a time, both sides on one thread.
func BenchmarkWrite(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	benchmarkWrite(b, newSides(b, writesAtOnce<<20))
}

// writesAtOnce is how many writes of 1 MiB are under way.
const writesAtOnce = 8

func benchmarkWrite(b *testing.B, sides [2]*side) {
	const window, size = writesAtOnce, 1 << 20
	from, to := sides[0], sides[1]
	access := fi.RMA{Dest: from.peer, Key: 1}
	memory := make([]byte, window*size)
	b.SetBytes(size)
	b.ReportAllocs()
	var posted, done int
	start := cpu()
	b.ResetTimer()
	for done < b.N {
		for ; posted-done < window && posted < b.N; posted++ {
			at := posted % window * size
			access.Buf, access.Offset = memory[at:at+size], uint64(at)
			if err := from.ep.Write(&access, 0); err != nil {
				b.Fatal(err)
			}
		}
		sent, _ := from.collect(b)
		done += sent
		to.dom.Progress()
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}
