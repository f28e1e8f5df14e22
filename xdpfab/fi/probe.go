// SPDX-License-Identifier: Apache-2.0

package fi

import "context"

// Probe is what an interface gave when it was opened for an instant.
type Probe struct {
	// InterfaceInfo describes it as a domain would that has opened it.
	InterfaceInfo
	// Refused says what was tried before, and why the driver or the kernel refused it:
	// native XDP, zero-copy. It is empty if the fastest modes can be had.
	Refused []string `json:"refused"`
	// OpeningSeconds is how long it took until the interface was open and could send.
	// Drivers of NICs may take the carrier away meanwhile.
	OpeningSeconds float64 `json:"opening_seconds"`
}

// ProbeInterface tells what an interface of the calling thread's network namespace would
// give to a domain. GetInfo says what its driver promises; only binding shows what a
// queue really gets. So it opens the interface, on all queues, in native mode or else in
// generic mode, with zero-copy or else without, and closes it again at once.
//
// It takes the privileges of Open. For the moment the XDP program is attached; all other
// traffic reaches the kernel as before, but a NIC may lose its carrier for a second or
// more, as it does when it is opened. An interface that has an XDP program already, such
// as that of a daemon, is left alone, with EBUSY; Domain.Interface describes one that is
// open, also through a daemon. Nothing is left behind, not even if the process is killed.
func ProbeInterface(ctx context.Context, ifname string) (Probe, error) { return probe(ctx, ifname) }
