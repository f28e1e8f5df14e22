// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// The daemon is killed in a loop and comes back with its file: acknowledged
// operations are in it, and nothing ran twice.
func TestDaemonKilled(t *testing.T) {
	w := newWorld(t, setting{seed: 6, process: true, client: xdpfab.DomainAttr{GiveUp: lively}})
	w.wire.SetBoth(faultwire.Faults{Loss: 0.02, Duplicate: 0.1, Replay: 0.2, Jitter: time.Millisecond})
	c := w.hire(plan{actors: 3, depth: 32, limit: 30000, seed: 6, pace: 50 * time.Microsecond}).start()
	for range 5 {
		w.answers(100)
		w.daemon.kill(t)
		w.daemon.start(t)
	}
	w.answers(100)
	w.heal()
	c.finish(true)
}

// A daemon that is stopped for a second is slow, not dead.
func TestDaemonStalled(t *testing.T) {
	w := newWorld(t, setting{seed: 7, process: true, udp: true, client: xdpfab.DomainAttr{GiveUp: lively}})
	before := survived.count("completed ok")
	c := w.hire(plan{actors: 2, depth: 64, limit: 3000, seed: 7}).start()
	w.answers(5)
	w.daemon.stall(t, time.Second)
	c.finish(false)
	if n := survived.count("completed ok") - before; n != 2*3001 {
		t.Errorf("%d of %d operations succeeded", n, 2*3001)
	}
}

// Clients are killed in a loop: each new one works at once, and one that works
// all the time is not disturbed.
func TestClientsKilled(t *testing.T) {
	const n = 6
	w := newWorld(t, setting{seed: 8, process: true, udp: true})
	must(t, w.client.CloseAll()) // the processes need the interface
	w.wire.SetBoth(faultwire.Faults{Loss: 0.01, Replay: 0.2})
	killClients(t, w, n, lively)
	s, err := w.daemon.status(t)
	must(t, err)
	if got := s.Counters["sessions_accepted"]; got < n || got > 3*n {
		t.Errorf("%d clients made %d sessions", n, got)
	}
}

// retirement checks that all sessions of killed clients are retired after the silence
// for which the clients asked, which grows with their give-up time. The function that it
// returns waits for that.
func retirement(t *testing.T, resident bool) (wait func()) {
	const n = 5
	w := newWorld(t, setting{process: true, resident: resident, daemonArgs: []string{"--idle-retire", "31s"}})
	must(t, w.client.CloseAll())
	killClients(t, w, n, time.Second)
	return func() {
		for end := time.Now().Add(2 * patience); !t.Failed(); time.Sleep(100 * time.Millisecond) {
			s, err := w.daemon.status(t)
			must(t, err)
			accepted, retired := s.Counters["sessions_accepted"], s.Counters["sessions_retired"]
			if accepted >= n && retired == accepted {
				survived.add("sessions retired", int(retired))
				return
			}
			if time.Now().After(end) {
				t.Fatalf("of %d sessions of dead clients %d are retired", accepted, retired)
			}
		}
	}
}
