// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"fmt"
	"strings"
	"time"
)

// Direction is one of the two that frames go in.
type Direction int

// The directions.
const (
	AtoB Direction = iota
	BtoA
	directions = 2
)

// String is "A>B" or "B>A".
func (d Direction) String() string { return [...]string{"A>B", "B>A"}[d] }

// Faults are what a direction does to its frames. The zero value is a good cable.
// Probabilities are per frame, 0 to 1.
type Faults struct {
	Cut       bool    // lose everything: a partition, one-way if the other direction is not cut
	Loss      float64 // lose the frame
	Duplicate float64 // deliver it twice, each copy with faults of its own
	Reorder   float64 // hold it back for up to ReorderBy, so that later ones overtake
	Corrupt   float64 // flip 1 to 8 bits anywhere
	Truncate  float64 // cut it short, at 14 bytes at least
	Replay    float64 // deliver a frame seen earlier as well, possibly much earlier
	Storm     int     // how many such frames a replay has; 0 means 1

	// Clog stops delivery for up to ClogTime; what arrives meanwhile then leaves at
	// once.
	Clog float64

	Delay     time.Duration // of every frame
	Jitter    time.Duration // more delay, uniform from 0 to this; it reorders
	ReorderBy time.Duration // 0 means 1 ms
	ClogTime  time.Duration // 0 means 20 ms
}

const (
	maxDelay = 30 * time.Second // the bound of each duration in Faults
	maxStorm = 4096             // frames
)

// check returns the faults with defaults filled in.
func (f Faults) check() (Faults, error) {
	for name, p := range map[string]float64{
		"Loss": f.Loss, "Duplicate": f.Duplicate, "Reorder": f.Reorder, "Corrupt": f.Corrupt,
		"Truncate": f.Truncate, "Replay": f.Replay, "Clog": f.Clog,
	} {
		if !(p >= 0 && p <= 1) { // NaN as well
			return f, fmt.Errorf("faultwire: %s %v: want a probability, 0 to 1", name, p)
		}
	}
	for name, d := range map[string]time.Duration{
		"Delay": f.Delay, "Jitter": f.Jitter, "ReorderBy": f.ReorderBy, "ClogTime": f.ClogTime,
	} {
		if d < 0 || d > maxDelay {
			return f, fmt.Errorf("faultwire: %s %v: want 0 to %v", name, d, maxDelay)
		}
	}
	if f.Storm < 0 || f.Storm > maxStorm {
		return f, fmt.Errorf("faultwire: Storm %d: want 0 to %d frames", f.Storm, maxStorm)
	}
	f.Storm = max(f.Storm, 1)
	if f.ReorderBy == 0 {
		f.ReorderBy = time.Millisecond
	}
	if f.ClogTime == 0 {
		f.ClogTime = 20 * time.Millisecond
	}
	return f, nil
}

// Event is an action of the wire on a frame, which it counts.
type Event int

// The events.
const (
	Received   Event = iota // taken from a side
	Forwarded               // handed to the other side, copies and replays included
	Cut                     // lost in a partition
	Lost                    // lost at random
	Duplicated              // delivered twice
	Reordered               // held back
	Corrupted               // changed
	Truncated               // cut short
	Replayed                // delivered again, from the past
	Clogged                 // times that delivery stopped
	Delayed                 // passed through the delay queue, for whatever reason
	Overflowed              // dropped because the delay queue was full
	Refused                 // dropped because the kernel took no more frames from the wire
	Dropped                 // dropped by the far side's receive ring, which was full
	Astray                  // lost because the destination has another address now
	numEvents
)

var eventNames = [numEvents]string{
	"received", "forwarded", "cut", "lost", "duplicated", "reordered", "corrupted", "truncated",
	"replayed", "clogged", "delayed", "overflowed", "refused", "dropped", "astray",
}

// String is the event's name in lower case.
func (e Event) String() string { return eventNames[e] }

// Stats counts events by direction since the wire was opened.
type Stats [directions][numEvents]uint64

// Total is the number of an event in both directions.
func (s *Stats) Total(e Event) uint64 { return s[AtoB][e] + s[BtoA][e] }

// Add adds another wire's counts.
func (s *Stats) Add(o Stats) {
	for d := range s {
		for e := range s[d] {
			s[d][e] += o[d][e]
		}
	}
}

// String lists the events, both directions together.
func (s Stats) String() string {
	var b strings.Builder
	for e := range numEvents {
		if n := s.Total(e); n > 0 {
			fmt.Fprintf(&b, " %v %d", e, n)
		}
	}
	return strings.TrimSpace(b.String())
}
