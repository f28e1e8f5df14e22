// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/mr"
)

// An operation that is in no frame yet when the target closes the session goes over to
// the next session. A flush behind it waits for it there, too.
func TestFlushWaitsForTheNextSession(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r, flushed results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 1 && bn.idle > 0 })
	bn.b.EndTargets(0)
	bn.b.Step()
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	op := bn.a.ring.Claim()
	op.Peer, op.Context, op.Verb, op.Count, op.Flags, op.Result = p.ID(), &flushed, engine.VerbFlush, 0, 0, nil
	op.Publish()
	bn.a.Collect(bn.a.ring)
	bn.until(func() bool { return flushed.n > 0 })
	if r.n != 2 || r.last.Outcome != engine.Success {
		t.Errorf("the flush has ended; of 2 operations before it, %d have: %+v", r.n, r.last)
	}
}
