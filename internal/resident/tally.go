// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"fmt"
	"sync/atomic"
)

// Tally counts what the program has done since it was loaded. While packets arrive, the
// numbers are not of the same instant.
type Tally struct {
	// Frames are the packets of sessions, by what became of them. Those of Unknown and
	// Unsound are not of resident sessions, as far as the program can tell.
	Frames [NumVerdicts]uint64
	// Ops are the operations that the program has executed, for packets and for calls.
	Ops uint64
	// Sessions is how many have begun.
	Sessions uint64
	// Lost are the frames whose answer by the program did not arrive in time. Relayed is
	// how often user space has begun to answer in the program's place for that.
	Lost, Relayed uint64
	// Returned are the sessions that gave their places to others, and went back to user
	// space.
	Returned uint64
}

// Tally returns the present numbers.
func (x *Executor) Tally() (t Tally, err error) {
	var each []uint64 // of a CPU
	for v := range uint32(NumVerdicts) {
		if err := x.objects.Tallies.Lookup(v, &each); err != nil {
			return t, fmt.Errorf("resident: reading tally %d: %w", v, err)
		}
		for _, n := range each {
			t.Frames[v] += n
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	others := x.committed.Load() // first, so that the sessions have noted all of them
	for place := range x.live {
		t.Ops += viewAt(x.sessions, place).ops()
	}
	t.Ops += x.gone - others
	t.Sessions = x.begun
	t.Returned = x.returned.Load()
	t.Lost, t.Relayed = x.lost.Load(), x.relays.Load()
	return t, nil
}

// counts are what an Executor knows for its Tally.
type counts struct {
	gone      uint64        // by sessions that ended, less those for former processes; under Executor.mu
	begun     uint64        // sessions; likewise
	committed atomic.Uint64 // operations that user space has executed
	lost      atomic.Uint64 // see Tally
	relays    atomic.Uint64 // likewise
	returned  atomic.Uint64 // likewise
}
