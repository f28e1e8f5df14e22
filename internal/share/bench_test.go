// SPDX-License-Identifier: Apache-2.0

package share

import (
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// BenchmarkHandOver measures how long an operation takes from the guest to the host and
// back, both of which spin on cores of their own: the host refuses it, so that nothing
// else is part of it. A hand-over is half of what is printed.
func BenchmarkHandOver(b *testing.B) {
	w := newWorld(b)
	g := w.guest(Sizes{Entries: 64, Arena: MinArena, Arrivals: MinArrivals})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for range 1000 {
				g.hostRing.Take(1)
			}
		}
	}()
	g.peer.Renumber(1000) // which the host does not know
	o := &tally{}
	for b.Loop() {
		s := g.Begin(g.ring)
		s.Peer, s.Count, s.Verb, s.Opcode = g.peer.ID(), 8, wire.VerbRead, wire.OpRead
		s.Context, s.Result = o, o.result[:]
		g.Submit(g.ring)
		for want := o.n + 1; o.n < want; {
			g.Spin()
		}
	}
	close(stop)
	<-stopped
}

// BenchmarkWords is fetch-adds of one word that a guest posts, one a post, with guest,
// host and target in one thread: what all of them together do for one.
func BenchmarkWords(b *testing.B) {
	w := newWorld(b)
	w.region(1, 1<<16)
	g := w.guest(Sizes{Entries: 64, Arena: MinArena, Arrivals: MinArrivals})
	o := &tally{}
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for posted := 0; b.Loop(); posted++ {
		s := g.Begin(g.ring)
		for ; s == nil; s = g.Begin(g.ring) {
			w.step()
		}
		s.Peer, s.Key, s.Offset, s.Count, s.Verb, s.Opcode, s.Datatype = g.peer.ID(), 1, uint64(posted%4096)*8, 1, wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64)
		s.SetOperands(one, nil)
		s.Result, s.Context = o.result[:], o
		g.Submit(g.ring)
	}
}
