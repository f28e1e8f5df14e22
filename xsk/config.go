// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"fmt"
	"math/bits"
	"time"
)

// Defaults of Config.
const (
	DefaultRingSize    = 2048
	DefaultBindTimeout = 100 * time.Millisecond
	// NoRing as Config.RXSize or TXSize leaves that ring out.
	NoRing = -1

	maxRingSize     = 1 << 24
	maxQueue        = 1<<16 - 1 // bind cuts higher numbers to 16 bits instead of refusing them
	defaultTXBudget = 32        // TX_BATCH_SIZE in net/xdp/xsk.c
)

// Mode is how frames pass between the UMEM and the driver.
type Mode uint8

// The modes.
const (
	Auto     Mode = iota // zero-copy where the driver has it, else copy
	ZeroCopy             // the NIC reads and writes the UMEM itself
	Copy                 // the kernel copies; works with every driver
)

// String names the mode.
func (m Mode) String() string {
	if names := [...]string{"auto", "zero-copy", "copy"}; int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Config tells Open what to open. UMEM (or Shared) and IfIndex must be given;
// zero means the default everywhere else.
type Config struct {
	UMEM    *UMEM // may be nil if Shared is set
	IfIndex int   // interface, in the network namespace of the calling thread
	Queue   int   // the RX and TX queue to bind to

	// Ring sizes in entries, powers of two; 0 means DefaultRingSize. A socket that
	// shares a queue has no Fill and Completion rings of its own and must leave
	// their sizes 0.
	RXSize, TXSize           int // NoRing leaves one of the two out
	FillSize, CompletionSize int

	Mode Mode

	// NoNeedWakeup turns the need-wakeup protocol off. Then every burst costs a
	// system call on drivers that would otherwise poll on their own.
	NoNeedWakeup bool

	// MultiBuffer lets a packet span several descriptors (XDP_USE_SG, Linux 6.6),
	// for frames longer than a chunk. The XDP program must be loaded as
	// frags-aware. See Continued.
	MultiBuffer bool

	// Shared is an open socket whose UMEM this one uses as well. Mode,
	// NoNeedWakeup and MultiBuffer are inherited and must be left zero. For the
	// same interface and queue the Fill and Completion rings are shared too.
	Shared *Socket

	BusyPoll BusyPoll

	// TXBudget is how many descriptors one Kick sends at most in copy mode, 32 up
	// to TXSize (XDP_MAX_TX_SKB_BUDGET, Linux 6.17). 0 asks for TXSize and takes
	// what the kernel offers, see Socket.TXBudget; a number is a demand.
	TXBudget int

	// SendBuffer is the limit in bytes on frames that the kernel has copied and
	// the device has not sent yet (SO_SNDBUF; copy mode). Each counts with its
	// bookkeeping, some 800 bytes more. 0 leaves the system's default
	// (net.core.wmem_default); more than net.core.wmem_max takes CAP_NET_ADMIN.
	SendBuffer int

	// BindTimeout is how long Open waits for a busy queue: the kernel frees it
	// some 10 ms after the previous socket was closed. 0 means
	// DefaultBindTimeout, a negative time means one attempt.
	BindTimeout time.Duration
}

// field names a ring size of Config.
type field struct {
	name     string
	size     *int
	optional bool // NoRing is allowed
}

// complete checks the configuration and fills in the defaults. sameQueue says
// that the rings of Shared are used.
func (c *Config) complete(sameQueue bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("xsk: "+format+": %w", append(args, ErrConfig)...)
	}
	switch {
	case c.UMEM == nil:
		return bad("no UMEM")
	case c.Shared != nil && c.Shared.fd < 0:
		return fmt.Errorf("xsk: the Shared socket: %w", ErrClosed)
	case c.Shared != nil && c.Shared.umem != c.UMEM:
		return bad("UMEM is not that of the Shared socket")
	case c.Shared != nil && (c.Mode != Auto || c.NoNeedWakeup || c.MultiBuffer):
		return bad("Mode, NoNeedWakeup and MultiBuffer are those of the Shared socket; leave them zero")
	case c.Mode > Copy:
		return bad("mode %v is none of Auto, ZeroCopy, Copy", c.Mode)
	case c.IfIndex <= 0:
		return bad("interface index %d is not positive", c.IfIndex)
	case c.Queue < 0:
		return bad("queue %d is negative", c.Queue)
	case c.Queue > maxQueue:
		return fmt.Errorf("xsk: queue %d: %w: the kernel numbers them 0 to %d", c.Queue, ErrNoQueue, maxQueue)
	case c.SendBuffer < 0 || c.SendBuffer > 1<<30:
		return bad("send buffer of %d bytes is not within 0 and 2^30", c.SendBuffer)
	case c.BusyPoll.Check() != nil:
		return bad("%v", c.BusyPoll.Check())
	case c.RXSize == NoRing && c.TXSize == NoRing:
		return bad("a socket needs an RX or a TX ring")
	case sameQueue && (c.FillSize != 0 || c.CompletionSize != 0):
		return bad("FillSize and CompletionSize are those of the Shared socket on the same queue; leave them zero")
	}
	for _, f := range []field{
		{"RXSize", &c.RXSize, true}, {"TXSize", &c.TXSize, true},
		{"FillSize", &c.FillSize, false}, {"CompletionSize", &c.CompletionSize, false},
	} {
		switch {
		case *f.size == NoRing && f.optional:
			continue
		case *f.size == 0:
			*f.size = DefaultRingSize
		case *f.size < 0 || *f.size > maxRingSize || bits.OnesCount(uint(*f.size)) != 1:
			return bad("%s %d is not a power of two up to %d", f.name, *f.size, maxRingSize)
		}
	}
	if c.TXBudget != 0 && (c.TXBudget < defaultTXBudget || c.TXBudget > c.TXSize) {
		return bad("TX budget %d is not within %d and the TX ring's size %d", c.TXBudget, defaultTXBudget, c.TXSize)
	}
	if c.BusyPoll.Budget == 0 {
		c.BusyPoll.Budget = defaultBusyBudget
	}
	if c.BindTimeout == 0 {
		c.BindTimeout = DefaultBindTimeout
	}
	return nil
}
