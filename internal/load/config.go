// SPDX-License-Identifier: Apache-2.0

// Package load posts atomic operations, as many as a window admits, and
// measures them. It uses only the public API. `xdpfab bench` and the benchmark make
// their load with it. A Transfer does the same for messages, and for writes and reads of
// memory, on anything that has such calls.
//
//	Fill, Post ── Endpoint ──▶ … ──▶ CompletionQueue ── Collect ──▶ Latency, Done
//	    ▲                                                  │
//	    └──────────────────── free slots ◀─────────────────┘
package load

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// WordSize is the size of the words that the operations work on, bytes.
const WordSize = 8

// Kind is an atomic operation, its datatype, and the form in which it is posted.
type Kind struct {
	op   atomic.Op
	form atomic.Func
	dt   atomic.Datatype
}

// Kinds on words. Those that add increase each element by one. The comparand of
// CompareAndSwap never matches, so that it leaves the words alone, as Read does.
var (
	Add            = Kind{atomic.Sum, atomic.Base, atomic.Uint64}
	FetchAdd       = Kind{atomic.Sum, atomic.Fetch, atomic.Uint64}
	Read           = Kind{atomic.Read, atomic.Fetch, atomic.Uint64}
	CompareAndSwap = Kind{atomic.Cswap, atomic.Compare, atomic.Uint64}
)

// NewKind returns a kind of any operation that is defined.
func NewKind(form atomic.Func, op atomic.Op, dt atomic.Datatype) (Kind, error) {
	if !atomic.Valid(form, op, dt) {
		return Kind{}, fmt.Errorf("%v %v is not defined for %v: want %s", form, op, dt, takenBy(form, op))
	}
	return Kind{op, form, dt}, nil
}

// takenBy lists the datatypes that an operation is defined for.
func takenBy(form atomic.Func, op atomic.Op) string {
	var names []string
	for dt := range atomic.Datatype(atomic.NumDatatypes) {
		if atomic.Valid(form, op, dt) {
			names = append(names, dt.String())
		}
	}
	if len(names) == 0 {
		return "another operation"
	}
	return strings.Join(names, ", ")
}

// Size returns the size of an element, bytes.
func (k Kind) Size() int { return k.dt.Size() }

// Adds reports whether each operation makes the sum of the elements grow by one for each
// element, without rounding.
func (k Kind) Adds() bool { return k.op == atomic.Sum && atomic.Valid(atomic.Base, atomic.Bor, k.dt) }

// Keeps reports whether the operation leaves the elements alone. A short one may be equal
// to the comparand.
func (k Kind) Keeps() bool {
	return k.op == atomic.Read || k.op == atomic.Cswap && k.form == atomic.Compare && k.Size() >= WordSize
}

// Mask has the bits of the sums that Sum returns.
func (k Kind) Mask() uint64 { return math.MaxUint64 >> (8 * (WordSize - min(k.Size(), WordSize))) }

func (k Kind) post(ep *fi.Endpoint, m *fi.Msg, flags fi.OpFlags) error {
	switch k.form {
	case atomic.Base:
		return ep.Atomic(m, flags)
	case atomic.Fetch:
		return ep.FetchAtomic(m, flags)
	}
	return ep.CompareAtomic(m, flags)
}

// Config describes what a Generator posts.
type Config struct {
	Kind      Kind
	Region    xdpfab.RemoteRegion // whose words the operations go to; its size may be unknown, 0
	Window    int                 // posts in flight, over all endpoints
	Endpoints int                 // each with a session; they take turns if they are more than the window
	Words     int                 // the number of words that the operations go to in turn
	First     int                 // the word to begin with
	Elements  int                 // of an operation
	// Operand and Comparand are of one element; nil for 1, and for one with all bits set.
	Operand, Comparand []byte
	Scatter            int // words of a post, each an operation of one element
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
	case c.Keys > 0 && c.Kind.Size() != WordSize:
		return fmt.Errorf("elements of %d bytes: want words of %d, to have one in each region", c.Kind.Size(), WordSize)
	case c.Operand != nil && len(c.Operand) != c.Kind.Size(),
		c.Comparand != nil && len(c.Comparand) != c.Kind.Size():
		return fmt.Errorf("operand of %d bytes, comparand of %d: want %d", len(c.Operand), len(c.Comparand),
			c.Kind.Size())
	case c.First < 0 || c.First >= c.Words:
		return fmt.Errorf("first word %d: want one of %d", c.First, c.Words)
	case c.Region.Size > 0 && c.size() > c.Region.Size:
		return fmt.Errorf("%d words of %d elements: region %s has %d bytes", c.Words, c.Elements, c.Region.Name,
			c.Region.Size)
	}
	return nil
}

// size returns the size of all words, bytes.
func (c *Config) size() uint64 { return uint64(c.Words) * uint64(c.Elements*c.Kind.Size()) }

// message returns what all posts have in common.
func (c *Config) message() fi.Msg {
	m := fi.Msg{Count: c.Elements * c.Scatter, Datatype: c.Kind.dt, Op: c.Kind.op}
	switch {
	case c.Keys > 0:
		m.Key = 1
	case c.Scatter == 1:
		m.Key = c.Region.Key
	}
	size := c.Kind.Size()
	one, ones := append([]byte{1}, make([]byte, size-1)...), bytes.Repeat([]byte{0xff}, size)
	if c.Operand != nil {
		one = c.Operand
	}
	if c.Comparand != nil {
		ones = c.Comparand
	}
	if c.Kind.op != atomic.Read {
		m.Buf = bytes.Repeat(one, m.Count)
	}
	if c.Kind.form == atomic.Compare {
		m.Compare = bytes.Repeat(ones, m.Count)
	}
	return m
}
