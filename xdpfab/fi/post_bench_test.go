// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// cpu returns the nanoseconds that this thread has been running.
func cpu() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return t.Nano()
}

// poster is an initiator and a target on one thread, and what a post needs.
type poster struct {
	other *xdpfab.Domain
	ep    *fi.Endpoint
	cq    *fi.CompletionQueue
	msg   fi.Msg // a fetch-add
}

func newPoster(b *testing.B, window int, threading fi.Threading) *poster {
	b.Helper()
	one, other, err := xdpfab.Pipe(fi.DomainAttr{Progress: fi.ProgressManual, Threading: threading})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = one.CloseAll(), other.CloseAll() })
	mem, _ := mr.Alloc(1<<20, mr.AllocOptions{})
	key := uint64(1)
	if _, err := other.Register(mem, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		b.Fatal(err)
	}
	served, _ := other.NewEndpoint(fi.EndpointAttr{})
	if err := served.Enable(); err != nil {
		b.Fatal(err)
	}
	av, _ := one.NewAddressVector()
	p := &poster{other: other}
	p.cq, _ = one.NewCompletionQueue(fi.CQAttr{Size: window})
	p.ep, _ = one.NewEndpoint(fi.EndpointAttr{Number: 5, Size: window})
	if err := errors.Join(p.ep.Bind(av, 0), p.ep.Bind(p.cq, 0), p.ep.Enable()); err != nil {
		b.Fatal(err)
	}
	dest, err := av.Insert(context.Background(), other.Name(0))
	if err != nil {
		b.Fatal(err)
	}
	p.msg = fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Count: 1, Dest: dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum}
	return p
}

// One word a post, window full, both sides on one thread: the cost of a fetch-add on it.
func BenchmarkPost(b *testing.B) {
	b.Run("safe", func(b *testing.B) { benchmarkPost(b, fi.ThreadSafe) })
	b.Run("domain", func(b *testing.B) { benchmarkPost(b, fi.ThreadDomain) })
}

func benchmarkPost(b *testing.B, threading fi.Threading) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const window = 1024
	p := newPoster(b, window, threading)
	results := make([]byte, 8*window)
	batch := make([]fi.Completion, window)
	free, posted, done := window, 0, 0
	var mine int64
	b.ReportAllocs()
	b.ResetTimer()
	for done < b.N {
		start := cpu()
		for free > 0 && posted < b.N {
			p.msg.Offset, p.msg.Result = uint64(posted%(1<<17))*8, results[8*(free-1):8*free]
			if err := p.ep.FetchAtomic(&p.msg, fi.FlagMore); err != nil {
				b.Fatal(err)
			}
			free--
			posted++
		}
		n, err := p.cq.Read(batch)
		if err != nil {
			b.Fatal(err)
		}
		free, done = free+n, done+n
		mine += cpu() - start
		p.other.Progress()
	}
	b.ReportMetric(float64(mine)/float64(b.N), "initiator-ns/op")
}

// As many words a post as a frame holds, window full, both sides on one thread: the cost
// of a word on it.
func BenchmarkPostFrame(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const words, window = 182, 64
	p := newPoster(b, window, fi.ThreadDomain)
	operands, extents := make([]byte, 8*words), make([]mr.Extent, words)
	for i := range extents {
		operands[8*i], extents[i] = 1, mr.Extent{Key: p.msg.Key, Offset: uint64(i*739%(1<<17)) * 8, Count: 1}
	}
	p.msg.Buf, p.msg.Count, p.msg.Key, p.msg.RMA = operands, words, 0, extents
	results := make([]byte, 8*words*window)
	batch := make([]fi.Completion, window)
	free := window
	var mine int64
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		start := cpu()
		for ; free > 0; free-- {
			p.msg.Result = results[8*words*(free-1) : 8*words*free]
			if err := p.ep.FetchAtomic(&p.msg, fi.FlagMore); err != nil {
				b.Fatal(err)
			}
		}
		n, err := p.cq.Read(batch)
		if err != nil {
			b.Fatal(err)
		}
		free, done = free+n, done+n*words
		mine += cpu() - start
		p.other.Progress()
	}
	b.ReportMetric(float64(mine)/float64(b.N), "initiator-ns/op")
}

// One word at a time, both sides on one thread: what a round trip costs beside the
// kernel.
func BenchmarkTrip(b *testing.B) {
	b.Run("safe", func(b *testing.B) { benchmarkTrip(b, fi.ThreadSafe) })
	b.Run("domain", func(b *testing.B) { benchmarkTrip(b, fi.ThreadDomain) })
}

func benchmarkTrip(b *testing.B, threading fi.Threading) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := newPoster(b, 64, threading)
	p.msg.Result = make([]byte, 8)
	batch := make([]fi.Completion, 1)
	b.ReportAllocs()
	start := cpu()
	for i := 0; b.Loop(); i++ {
		p.msg.Offset = uint64(i%(1<<17)) * 8
		if err := p.ep.FetchAtomic(&p.msg, 0); err != nil {
			b.Fatal(err)
		}
		for n := 0; n == 0; {
			p.other.Progress()
			var err error
			if n, err = p.cq.Read(batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}
