// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Two endpoints with a small queue in common, and goroutines that post and read as fast
// as they can, by every way there is: each operation completes once, the latest of each
// goroutine is the last to apply, and no place of the queue is lost.
func TestCQConserves(t *testing.T) {
	const posters = 4
	each := reduced(2000, 500)
	for _, mode := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := sleepLong(t)
			a, b, mem := servedPipe(t, fi.DomainAttr{Progress: mode}, fi.DomainAttr{})
			t.Cleanup(func() { _ = errors.Join(a.CloseAll(), b.CloseAll()) })
			p, err := a.Dial(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			region, err := p.Lookup(ctx, "r")
			if err != nil {
				t.Fatal(err)
			}
			av, _ := a.NewAddressVector()
			cq, _ := a.NewCompletionQueue(fi.CQAttr{Size: 64})
			dest, err := av.Insert(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			var eps [2]*fi.Endpoint
			for i := range eps {
				eps[i], _ = a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 32, InitiateOnly: true})
				if err := errors.Join(eps[i].Bind(av, 0), eps[i].Bind(cq, 0), eps[i].Enable()); err != nil {
					t.Fatal(err)
				}
			}
			for i := range posters {
				go func() {
					for n := range each {
						value := binary.LittleEndian.AppendUint64(nil, uint64(n+1))
						var err error
						for err = fi.ErrAgain; errors.Is(err, fi.ErrAgain); runtime.Gosched() {
							flags := []fi.OpFlags{0, 0, fi.FlagMore, fi.FlagInject, fi.FlagFence}[n%5]
							err = eps[i%2].Atomic(&fi.Msg{Buf: value, Count: 1, Dest: dest, Offset: uint64(8 * i), Key: region.Key,
								Datatype: atomic.Uint64, Op: atomic.Write, Context: i*each + n}, flags)
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				}()
			}
			seen, list := make([]int, posters*each), make([]fi.Completion, 16)
			for got := 0; got < len(seen); {
				if err := cq.Wait(ctx, 1); err != nil {
					t.Fatalf("after %d of %d completions: %v", got, len(seen), err)
				}
				n, err := cq.Read(list)
				if err != nil {
					c, _ := cq.ReadErr()
					t.Fatal(c.Err)
				}
				for _, c := range list[:n] {
					seen[c.Context.(int)]++
				}
				got += n
			}
			for i, n := range seen {
				if n != 1 {
					t.Fatalf("operation %d completed %d times", i, n)
				}
			}
			for i := range posters {
				if v := binary.LittleEndian.Uint64(mem[8*i:]); v != uint64(each) {
					t.Errorf("the last write applied to word %d is number %d of %d", i, v, each)
				}
			}
			eps[0].Stepper().Call(func() {
				if n := cq.Taken(); n != 0 {
					t.Errorf("%d places are taken of an empty queue", n)
				}
			})
		})
	}
}
