// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"math/rand/v2"
	"sync"
)

// Faults are what a port can do to the packets sent through it, with probabilities from
// 0 to 1. They are for tests.
type Faults struct {
	Loss      float64 // dropped
	Duplicate float64 // sent twice
	Reorder   float64 // sent behind up to 8 of the next packets
	Corrupt   float64 // one bit of the frame flipped
}

// disturber applies faults.
type disturber struct {
	mu     sync.Mutex // guards faults and rng against SetFaults
	faults Faults
	rng    *rand.Rand

	held  []byte // a packet that goes behind others; nil for none
	after int    // packets that go first
}

func newDisturber() *disturber {
	return &disturber{rng: rand.New(rand.NewPCG(1, 0x75647066))}
}

func (d *disturber) set(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

// send gives put the packets to send in place of one, each of which put copies. The frame
// begins at an offset.
func (d *disturber) send(packet []byte, frame int, put func(packet []byte)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, rng := d.faults, d.rng
	packet = append([]byte(nil), packet...) // put uses the memory
	if rng.Float64() < f.Corrupt {
		bit := 8*frame + rng.IntN(8*(len(packet)-frame))
		packet[bit/8] ^= 1 << (bit % 8)
	}
	switch {
	case rng.Float64() < f.Loss:
	case d.held == nil && rng.Float64() < f.Reorder:
		d.held, d.after = packet, 1+rng.IntN(8)
	default:
		put(packet)
		if rng.Float64() < f.Duplicate {
			put(packet)
		}
	}
	if d.after--; d.held != nil && d.after <= 0 {
		put(d.held)
		d.held = nil
	}
}
