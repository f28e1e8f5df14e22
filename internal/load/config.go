// SPDX-License-Identifier: Apache-2.0

// Package load posts operations on uint64 words, as many as a window admits, and
// measures them. It uses only the public API. `xdpfab bench` and the benchmark make
// their load with it. A Transfer does the same for messages, and for writes and reads of
// memory, on anything that has such calls.
//
//	Fill, Post ── Endpoint ──▶ … ──▶ CompletionQueue ── Collect ──▶ Latency, Done
//	    ▲                                                  │
//	    └──────────────────── free slots ◀─────────────────┘
package load

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// WordSize is the size of the words that the operations work on, bytes.
const WordSize = 8

// Kind is an operation and the form in which it is posted.
type Kind struct {
	op   atomic.Op
	form atomic.Func
	post func(*fi.Endpoint, *fi.Msg, fi.OpFlags) error
}

// The kinds. Those that add increase each element by one. The comparand of
// CompareAndSwap never matches, so that it leaves the words alone, as Read does.
var (
	Add            = Kind{atomic.Sum, atomic.Base, (*fi.Endpoint).Atomic}
	FetchAdd       = Kind{atomic.Sum, atomic.Fetch, (*fi.Endpoint).FetchAtomic}
	Read           = Kind{atomic.Read, atomic.Fetch, (*fi.Endpoint).FetchAtomic}
	CompareAndSwap = Kind{atomic.Cswap, atomic.Compare, (*fi.Endpoint).CompareAtomic}
)

// Adds reports whether the words grow.
func (k Kind) Adds() bool { return k.op == atomic.Sum }

// Config describes what a Generator posts.
type Config struct {
	Kind      Kind
	Region    xdpfab.RemoteRegion // whose words the operations go to; its size may be unknown, 0
	Window    int                 // posts in flight, over all endpoints
	Endpoints int                 // each with a session; they take turns if they are more than the window
	Words     int                 // the number of words that the operations go to in turn
	First     int                 // the word to begin with
	Elements  int                 // of an operation
	Scatter   int                 // words of a post, each an operation of one element
	// Keys, if more than 0, are regions with the keys 1 to Keys that the operations
	// go to in turn, instead of Region.
	Keys int
	// Order is the order of the operations of an endpoint; see
	// xdpfab.EndpointAttr.MsgOrder.
	Order fi.Order
}

// check returns an error if the configuration is wrong.
func (c *Config) check() error {
	switch {
	case c.Window < 1 || c.Endpoints < 1 || c.Words < 1 || c.Elements < 1 || c.Scatter < 1:
		return fmt.Errorf("window %d, %d endpoints, %d words, %d elements, scatter %d: want 1 or more of each",
			c.Window, c.Endpoints, c.Words, c.Elements, c.Scatter)
	case c.Scatter > 1 && (c.Elements > 1 || c.Keys > 0):
		return fmt.Errorf("%d words a post: want one element each, in one region", c.Scatter)
	case c.First < 0 || c.First >= c.Words:
		return fmt.Errorf("first word %d: want one of %d", c.First, c.Words)
	case c.Region.Size > 0 && c.size() > c.Region.Size:
		return fmt.Errorf("%d words of %d elements: region %s has %d bytes", c.Words, c.Elements, c.Region.Name,
			c.Region.Size)
	}
	return nil
}

// size returns the size of all words, bytes.
func (c *Config) size() uint64 { return uint64(c.Words) * uint64(c.Elements) * WordSize }

// message returns what all posts have in common.
func (c *Config) message() fi.Msg {
	m := fi.Msg{Count: c.Elements * c.Scatter, Datatype: atomic.Uint64, Op: c.Kind.op}
	switch {
	case c.Keys > 0:
		m.Key = 1
	case c.Scatter == 1:
		m.Key = c.Region.Key
	}
	for range m.Count {
		if c.Kind.op != atomic.Read {
			m.Buf = binary.LittleEndian.AppendUint64(m.Buf, 1)
		}
		if c.Kind.form == atomic.Compare {
			m.Compare = binary.LittleEndian.AppendUint64(m.Compare, math.MaxUint64)
		}
	}
	return m
}
