// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// A waiter that is finished has its signal raised: at no time can one see the one
// without the other. A caller whose context ends in between would take the waiter back
// and recycle it, and the late raise would end the wait of the next user: a success that
// never happened. Those that look contend for the lock, so that it passes from the
// completion to one of them: a completion that raises the signal after it gave the lock
// up shows within some ten rounds.
func TestWaiterRecycledBeforeRaise(t *testing.T) {
	for i := range 40 {
		w := &Waiter{Signal: progress.NewSignal(), p: &Peer{Route: Route{Allotment: NewRoom(nil, 0).Join()}}}
		var (
			all   sync.WaitGroup
			looks atomic.Int32
		)
		for range 4 {
			all.Go(func() {
				for finished := false; !finished; looks.Add(1) {
					w.mu.Lock()
					if finished = w.finished; finished && !w.Ready() {
						t.Errorf("round %d: finished, and the signal is not raised", i)
					}
					w.mu.Unlock()
				}
			})
		}
		for looks.Load() < 8 {
			runtime.Gosched()
		}
		w.Complete(&engine.Submission{}, &engine.Completion{}, nil)
		if all.Wait(); t.Failed() {
			return
		}
		if w.detach() != nil { // as Do() when the context has ended
			t.Fatal("impossible")
		}
		w.Reset() // Do() of the next caller
		if w.Ready() {
			t.Fatalf("round %d: the next user's wait is over before its operation is posted", i)
		}
	}
}
