// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/mr"
)

// The timers of more sessions than are looked at at once: every one of them gets its
// turn, and sends lost frames again.
func TestTimersOfManySessions(t *testing.T) {
	const sessions, rounds = 700, 3
	bn := newBench(t, 1, session.Config{GiveUp: time.Hour})
	mem := bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	bn.a.port.SetFaults(port.Faults{Loss: 0.3})
	bn.b.port.SetFaults(port.Faults{Loss: 0.3})
	var r results
	var peers []*engine.Peer
	for range sessions {
		peers = append(peers, bn.peer(0))
	}
	for range rounds {
		for _, p := range peers {
			bn.until(func() bool { return bn.fetchAdd(p, &r, 1, 0, 1, nil) })
		}
	}
	bn.until(func() bool { return r.n == rounds*sessions })
	if sum := binary.LittleEndian.Uint64(mem); sum != rounds*sessions || r.fates[engine.Success] != rounds*sessions {
		t.Errorf("sum %d, fates %v, want %d", sum, r.fates, rounds*sessions)
	}
}
