// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/node"
)

// slowCounters is an interface whose counters take as long to read as the test wants.
type slowCounters struct {
	node.Device
	begun  atomic.Int32
	permit chan struct{}
}

var errCounted = errors.New("counted")

func (s *slowCounters) Counters() (map[string]uint64, error) {
	s.begun.Add(1)
	<-s.permit
	return nil, errCounted
}

// A program may ask for counters a thousand times at once. Only the reading that has
// begun delays its end, and a takeover: the other calls move to the next process.
func TestCallsForCountersDelayNoTakeover(t *testing.T) {
	for what, read := range map[string]func(*Guest, context.Context, struct{}) (map[string]uint64, error){
		"of a guest": (*Guest).counters, "of a borrower": (*Guest).loanCounters} {
		t.Run(what, func(t *testing.T) {
			slow := &slowCounters{permit: make(chan struct{})}
			g := &Guest{h: &Host{n: &node.Node{Dev: slow}}}
			ctx, cancel := context.WithCancelCause(t.Context())
			const calls = 100
			ends := make(chan error, calls)
			for range calls {
				go func() {
					_, err := read(g, ctx, struct{}{})
					ends <- err
				}()
			}
			slow.permit <- struct{}{} // one has been read, and another one has begun or will
			if err := <-ends; err != errCounted {
				t.Fatal(err)
			}
			cancel(errLeaving)
			close(slow.permit)
			var moved, counted int
			for range calls - 1 {
				switch err := <-ends; err {
				case errLeaving:
					moved++
				case errCounted:
					counted++
				default:
					t.Error(err)
				}
			}
			if n := slow.begun.Load(); counted > 1 || int(n) != 1+counted || moved+counted != calls-1 {
				t.Errorf("%d readings of %d calls, %d of them after the takeover began; %d calls moved", n, calls, counted, moved)
			}
		})
	}
}
