// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xsk"
)

// DefaultQueues is how many queues are used at most if Options.Queues is 0.
const DefaultQueues = nic.DefaultQueues

// Options say how to use an interface. The zero value is a good choice.
type Options struct {
	// Queues is how many queues to use, from queue 0 on; 0 means nic.DefaultQueues, or as
	// many as there are. Frames that the NIC puts into another queue go to Mind.
	Queues int
	// Lend is how many queues behind those are for other programs: see Interface.Lend.
	Lend int
	// Copy is the AF_XDP mode. Auto means zero-copy if the driver has it.
	Copy xsk.Mode
	// XDP forces bpf.Native or bpf.Generic, which is slower. Auto is
	// native; on an interface that stands for several others, as a bond does, generic.
	// Any is generic where the driver has no native XDP, too.
	XDP bpf.Mode
	// UDP makes the interface accept frames over UDP to its present addresses
	// as well.
	UDP bool
	// VLAN is whose frames are accepted, by their 802.1Q tag. Those of one VLAN are sent
	// with its tag, and its interface on top has the IP addresses.
	VLAN bpf.VLANPolicy
	// Execute lets the XDP program call another one: see bpf.Config.
	Execute bool
	// Adopt is a folder of a BPF file system in which another process left its XDP
	// program (bpf.Program.Pin); empty for none. The interface adopts that program.
	Adopt string
	// Inherit is what the interface's former user has left (Interface.Leave); nil for
	// none. The descriptors stay the caller's. Adopt then says where the XDP program is
	// pinned, if it is.
	Inherit *Inheritance
	// Fits, if it is not nil, says that the XDP program keeps answering, with an
	// executor: Open calls it before the program does anything, and returns its error; a
	// driver that drops answers (Interface.Answers) is an error, too. If Open fails, the
	// program of Adopt or Inherit runs as before.
	Fits func(*Interface) error
	// RingSize is the number of entries of each ring but Fill, a power of two; 0 means
	// 2048, and 1024 with zero-copy (nic.Plan.RingSize).
	RingSize int
	// Chunks is the number of packet buffers of each queue, half of them to
	// receive into and half to send from. 0 means twice RingSize, and the maximum is
	// twice as many. If both are 0, it is 4096.
	Chunks int
	// BusyPoll is for NICs; see xsk.BusyPoll. Open holds the interrupts of the queues in
	// use back, and refuses if that cannot be; so it does on veth, and with generic XDP.
	BusyPoll xsk.BusyPoll
	// Remember is the path of a file that says which interrupts are held back, for the
	// next user of the interface, if this process is killed. Open undoes what it says.
	// Empty: there is none, so no BusyPoll.
	Remember string

	chunk    int           // bytes of a packet buffer; like segments, that of the nic.Plan
	segments int           // see nic.Plan
	share    bool          // the memory of the queue has to be another process's too
	listens  bool          // nothing is sent: all chunks but those of one packet are to receive into
	patience time.Duration // with a queue that seems taken; bindTimeout unless given, negative for none
}

const (
	maxRingSize  = 1 << 16
	minChunks    = 64 // half of it is a useful burst
	lane         = 0  // of the sockets that this package opens
	skbOverhead  = 1024
	maxSendBytes = 1 << 30
)

// adopts reports whether the interface adopts the program of another process.
func (o *Options) adopts() bool { return o.Adopt != "" || o.Inherit != nil }

// fillSize is the number of entries of the fill ring. The kernel hands packets over
// before it says that their chunks have left the ring, so for a moment a chunk may count
// in it twice.
func (o *Options) fillSize() int {
	if o.Chunks > 2*o.RingSize {
		return 4 * o.RingSize
	}
	return 2 * o.RingSize
}

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	if o.RingSize == 0 {
		o.RingSize = xsk.DefaultRingSize
	}
	if o.RingSize < minChunks/2 || o.RingSize > maxRingSize || bits.OnesCount(uint(o.RingSize)) != 1 {
		return fmt.Errorf("ring size %d: want a power of two from %d to %d", o.RingSize, minChunks/2, maxRingSize)
	}
	if o.Chunks == 0 {
		o.Chunks = 2 * o.RingSize
	}
	switch {
	case o.Chunks < minChunks || o.Chunks > 4*o.RingSize:
		return fmt.Errorf("%d chunks for rings of %d entries: want %d to %d", o.Chunks, o.RingSize, minChunks,
			4*o.RingSize)
	case o.Queues < 0:
		return fmt.Errorf("%d queues: want 0 for at most 4, or more", o.Queues)
	case o.BusyPoll.Time > 0 && o.Remember == "":
		return errors.New("busy polling without a file to remember what is changed for it: want both")
	}
	return nil
}

// UnfitError is the error of a program that another process left, or of what belongs to
// it: this process cannot take its place.
type UnfitError struct{ Err error }

// Error is the text of the reason.
func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnfitError) Unwrap() error { return e.Err }
