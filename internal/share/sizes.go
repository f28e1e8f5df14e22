// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"math/bits"
)

// Sizes are the dimensions of a segment.
type Sizes struct {
	Entries int `json:"entries"` // of either ring; a power of two
	Arena   int `json:"arena"`   // bytes, a multiple of 4096
	// Arrivals is the bytes of the ring for what peers send; a power of two.
	Arrivals int `json:"arrivals"`
}

// Limits of the sizes.
const (
	MinEntries, MaxEntries = 16, 1 << 16
	MinArena, MaxArena     = 1 << 16, 1 << 30

	MinArrivals, MaxArrivals = 1 << 16, 1 << 28
)

// Check reports an error unless there can be a segment of these sizes.
func (s Sizes) Check() error {
	switch {
	case s.Entries < MinEntries || s.Entries > MaxEntries || bits.OnesCount(uint(s.Entries)) != 1:
		return fmt.Errorf("rings of %d entries: want a power of two, %d..%d", s.Entries, MinEntries, MaxEntries)
	case s.Arena < MinArena || s.Arena > MaxArena || s.Arena%page != 0:
		return fmt.Errorf("arena of %d bytes: want a multiple of %d, %d..%d", s.Arena, page, MinArena, MaxArena)
	}
	if s.Arrivals < MinArrivals || s.Arrivals > MaxArrivals || bits.OnesCount(uint(s.Arrivals)) != 1 {
		return fmt.Errorf("ring of arrivals of %d bytes: want a power of two, %d..%d", s.Arrivals, MinArrivals,
			MaxArrivals)
	}
	return nil
}

const (
	page         = 4096
	entryLen     = 128
	completedLen = 64
)

// Len is the length of the segment, bytes.
func (s Sizes) Len() int { return page + s.Entries*(entryLen+completedLen) + s.Arena + s.Arrivals }

// The dimensions of the shared memory, unless the host allows less.
const (
	defaultEntries  = 4096
	defaultArena    = 16 << 20 // bytes
	defaultArrivals = 1 << 20  // bytes
)

// Default returns the dimensions that a program chooses, of a host that allows so much at
// most: the defaults, or less.
func (most Sizes) Default() Sizes {
	entries := defaultEntries
	for entries > max(most.Entries, MinEntries) {
		entries /= 2 // it stays a power of two
	}
	arrivals := defaultArrivals
	for arrivals > max(most.Arrivals, MinArrivals) {
		arrivals /= 2
	}
	return Sizes{Entries: entries, Arena: max(min(defaultArena, most.Arena&^4095), MinArena),
		Arrivals: arrivals}
}
