// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
)

// Faults are what can happen to the packets that a domain of a [Pipe], or one with
// TransportUDP, sends, each with a probability from 0 to 1. A generator with a fixed seed
// makes the choices.
type Faults struct {
	Loss      float64 // dropped; 1 at both domains is a partition
	Duplicate float64 // delivered twice
	Reorder   float64 // delivered ahead of up to 8 packets sent before
	Corrupt   float64 // one bit flipped

	Delay time.Duration // every packet is delayed by this much, or a little more
}

// SetFaults sets the faults of the packets that the domain sends from now on. It is for
// tests of programs: how they handle an operation that ends with [ErrOutcomeUnknown], for
// example. It fails with ErrNotImplemented unless the domain is one of a Pipe, or has
// TransportUDP, where packets cannot be delayed.
func (d *Domain) SetFaults(f Faults) error {
	dev, ok := d.node.Dev.(node.Disturbable)
	if !ok {
		return fmt.Errorf("xdpfab: domain on %s: faults are for the domains of a Pipe, or with TransportUDP: %w",
			d.node.Dev.Info().Name, ErrNotImplemented)
	}
	for _, p := range []float64{f.Loss, f.Duplicate, f.Reorder, f.Corrupt} {
		if !(p >= 0 && p <= 1) { // written so that NaN is refused
			return fmt.Errorf("xdpfab: fault with probability %v: want 0..1", p)
		}
	}
	if f.Delay < 0 {
		return fmt.Errorf("xdpfab: delay of %v: want 0 or more", f.Delay)
	}
	if err := dev.Disturb(port.Faults(f)); err != nil {
		return fmt.Errorf("xdpfab: %w", err)
	}
	return nil
}
