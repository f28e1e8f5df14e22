// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// cpu returns the nanoseconds that this thread has been running.
func cpu() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return t.Nano()
}

// One word a post, window full, both sides on one thread: the cost of a fetch-add on it.
func BenchmarkPost(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := xdpfab.DomainAttr{Progress: xdpfab.ProgressManual}
	one, other, err := xdpfab.Pipe(attr)
	if err != nil {
		b.Fatal(err)
	}
	defer other.CloseAll()
	defer one.CloseAll()
	mem, _ := mr.Alloc(1<<20, mr.AllocOptions{})
	key := uint64(1)
	if _, err := other.Register(mem, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		b.Fatal(err)
	}
	served, _ := other.NewEndpoint(xdpfab.EndpointAttr{})
	if err := served.Enable(); err != nil {
		b.Fatal(err)
	}
	const window = 1024
	av, _ := one.NewAddressVector()
	cq, _ := one.NewCompletionQueue(xdpfab.CQAttr{Size: window})
	ep, _ := one.NewEndpoint(xdpfab.EndpointAttr{Number: 5, Size: window})
	_ = ep.Bind(av, 0)
	_ = ep.Bind(cq, 0)
	if err := ep.Enable(); err != nil {
		b.Fatal(err)
	}
	dest, err := av.Insert(context.Background(), other.Name(0))
	if err != nil {
		b.Fatal(err)
	}
	results := make([]byte, 8*window)
	operand := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	batch := make([]xdpfab.Completion, window)
	msg := xdpfab.Msg{Buf: operand, Count: 1, Dest: dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum}
	free, posted, done := window, 0, 0
	var mine int64
	b.ReportAllocs()
	b.ResetTimer()
	for done < b.N {
		start := cpu()
		for free > 0 && posted < b.N {
			msg.Offset, msg.Result = uint64(posted%(1<<17))*8, results[8*(free-1):8*free]
			if err := ep.FetchAtomic(&msg, xdpfab.FlagMore); err != nil {
				b.Fatal(err)
			}
			free--
			posted++
		}
		n, err := cq.Read(batch)
		if err != nil {
			b.Fatal(err)
		}
		free, done = free+n, done+n
		mine += cpu() - start
		other.Progress()
	}
	b.ReportMetric(float64(mine)/float64(b.N), "initiator-ns/op")
}
