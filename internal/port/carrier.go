// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import "time"

// Drivers of NICs set their queues up anew when they get an XDP program, and again when
// zero-copy begins. Meanwhile there is no carrier: for a second with igb, for longer
// where the speed is negotiated. Frames of that time are lost in copy mode, and peers
// give up after a few seconds, so Open waits until the carrier is back.
const (
	carrierBack = 10 * time.Second // for one that was there before; negotiation takes up to 5 s
	// carrierNew is for one that was not: the process that had the interface before has
	// just given it back, or there is no cable.
	carrierNew   = 2 * time.Second
	carrierPause = 10 * time.Millisecond // between two looks
)

// awaitCarrier waits until the interface can send. Without a carrier in the end it is
// opened all the same: Watch tells that it is down, and when it is up. A veth keeps its
// carrier, which is its peer's to give.
func (i *Interface) awaitCarrier(before bool) {
	if i.driver == "veth" {
		return
	}
	limit := carrierNew
	if before {
		limit = carrierBack
	}
	for end := time.Now().Add(limit); !i.sends() && time.Now().Before(end); {
		time.Sleep(carrierPause)
	}
}

// sends reports whether the interface is up and has a carrier.
func (i *Interface) sends() bool {
	s, err := i.resolver.LinkState()
	return err == nil && s.Up
}
