// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/mr"
)

// A thread that lost its core between two idle rounds does not date what it sends
// then in the past, and so does not send it again at once.
func TestSpinLooksAtTheClockBeforeItSends(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n == 1 })
	for range 20 {
		bn.step()
	}
	for range 3 {
		bn.a.Spin()
	}
	sent := bn.a.port.Sent
	bn.now += 11e6 // off the core
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	for range 20 {
		bn.now += 50 // ns
		bn.a.Spin()
	}
	if got := bn.a.port.Sent - sent; got != 1 {
		t.Errorf("1 microsecond after posting, %d packets, want 1", got)
	}
}
