// SPDX-License-Identifier: Apache-2.0

// Package bench is what `xdpfab bench` does: it keeps operations in flight at one or more
// peers, measures them, and checks what they have done. Package load posts them.
//
//	Config ── check ──▶ Run: warm up, measure, stop, drain ──▶ verify ──▶ Report
//	                      one worker for each endpoint of each peer
//
// Messages need another side, which Serve is.
package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/value"
	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/internal/tell"
)

// Limits of a Config.
const (
	MaxWindow    = 1 << 16 // posts in flight for each endpoint
	MaxEndpoints = 1024
	MaxWords     = 4096 // words of one post, and words that Spread uses
)

// Config says what is measured.
type Config struct {
	Op        string
	Datatype  atomic.Datatype // of atomic operations
	Stream    bool            // mode throughput: many in flight
	Size      uint64          // bytes of an operation; 0 for one element, and 8 bytes of others
	Words     int             // of a post, each an operation of its own; 1
	Window    int             // posts in flight for each endpoint; 0 for what suits
	Endpoints int             // of each peer
	Both      bool            // half of the endpoints go the other way
	Count     int             // operations to measure, in place of Duration
	Duration  time.Duration
	Warmup    time.Duration
	Spread    bool // words in turn
	Manual    bool // the domain's progress: a worker that is alone polls then, and does not wait
	// Percentiles of the latency that the report has, besides those that it has always.
	Percentiles []float64
}

// Operations that are not atomic.
const (
	Put    = "put"    // bytes to the region: remote writes
	Get    = "get"    // bytes from the region: remote reads
	Send   = "send"   // messages
	Tagged = "tagged" // messages with a tag

	PutSignal = "put-signal" // put, each with a signal that adds 1 to a word behind the bytes
)

// Ops are the names of operations that the shell offers; any operation of fi_atomic(3)
// has a name besides: sum, fetch_max, cswap_le.
func Ops() []string {
	return []string{"fetch_add", "add", "read", "cswap", Put, Get, PutSignal, Send, Tagged}
}

// Atomic reports whether the operation is an atomic one.
func (c *Config) Atomic() bool {
	return !slices.Contains([]string{Put, PutSignal, Get, Send, Tagged}, c.Op)
}

// Messages reports whether the operation is messages, which Serve has to answer.
func (c *Config) Messages() bool { return c.Op == Send || c.Op == Tagged }

// kind returns the kind of an atomic operation, by its name.
func (c *Config) kind() (load.Kind, error) {
	name, form := c.Op, atomic.Base
	if base, is := strings.CutPrefix(name, "fetch_"); is {
		name, form = base, atomic.Fetch
	}
	if name == "add" {
		name = atomic.Sum.String()
	}
	op, err := atomic.ParseOp(name)
	if err != nil {
		return load.Kind{}, fmt.Errorf("unknown operation %q%s: want one of %s, or one of fi_atomic(3) such as sum, "+
			"fetch_max or cswap_le", c.Op, likeOp(c.Op), strings.Join(Ops(), ", "))
	}
	switch {
	case op == atomic.Read:
		form = atomic.Fetch
	case form == atomic.Base && atomic.Valid(atomic.Compare, op, c.Datatype):
		form = atomic.Compare
	}
	return load.NewKind(form, op, c.Datatype)
}

// likeOp asks whether the operation was meant that begins with an unknown one, or that is
// close to it.
func likeOp(word string) string {
	for _, name := range Ops() {
		if word != "" && strings.HasPrefix(name, word) {
			return ", did you mean " + name + "?"
		}
	}
	return tell.DidYouMean(word, Ops())
}

// Check completes a configuration, and returns an error about what is wrong in it.
func (c *Config) Check() error {
	unit := uint64(load.WordSize)
	if c.Atomic() {
		k, err := c.kind()
		if err != nil {
			return err
		}
		unit = uint64(k.Size())
	}
	c.Words = max(c.Words, 1)
	if c.Size == 0 {
		c.Size = unit
	}
	switch {
	case c.Atomic() && c.Size%unit > 0:
		return fmt.Errorf("--size %d: want a multiple of %d bytes, the size of %v", c.Size, unit, c.Datatype)
	case !c.Atomic() && c.Size < unit:
		return fmt.Errorf("--size %d: want %d bytes or more", c.Size, unit)
	case c.Size > 1<<30:
		return fmt.Errorf("--size %s: want 1 GiB or less", show.Size(c.Size))
	case c.Words > MaxWords:
		return fmt.Errorf("--words %d: want 1 to %d", c.Words, MaxWords)
	case c.Words > 1 && (!c.Atomic() || c.Size > unit):
		return fmt.Errorf("--words %d: want an atomic operation, of one element for each word", c.Words)
	case c.Endpoints < 1 || c.Endpoints > MaxEndpoints:
		return fmt.Errorf("--endpoints %d: want 1 to %d", c.Endpoints, MaxEndpoints)
	case c.Both && c.Atomic():
		return fmt.Errorf("--both with --op %s: want put or get, so that half of the endpoints do the other, or "+
			"send or tagged", c.Op)
	case c.Both && c.Messages() && !c.Stream:
		return fmt.Errorf("--both with --op %s: want --mode throughput; in mode latency each message comes back",
			c.Op)
	case c.Both && c.Endpoints%2 > 0:
		return fmt.Errorf("--both with --endpoints %d: want an even number", c.Endpoints)
	case c.Count < 0 || c.Count > 0 && c.Count < c.Endpoints:
		return fmt.Errorf("--count %d: want at least one operation for each endpoint", c.Count)
	case c.Duration <= 0:
		return fmt.Errorf("--duration %v: want more than 0", c.Duration)
	case c.Warmup < 0:
		return fmt.Errorf("--warmup %v: want 0 or more", c.Warmup)
	case !c.Stream && c.Window > 1:
		return fmt.Errorf("--window %d: mode latency has one operation in flight; want --mode throughput", c.Window)
	}
	for _, p := range c.Percentiles {
		if !(p >= 0 && p <= 100) {
			return fmt.Errorf("percentile %v: want 0 to 100", p)
		}
	}
	return c.window()
}

// window chooses how many posts are in flight, if the caller has not.
func (c *Config) window() error {
	const single, bytes, least = 1024, 48 << 10, 16
	switch {
	case !c.Stream:
		c.Window = 1
	case c.Window == 0 && c.Size*uint64(c.Words) <= load.WordSize:
		c.Window = single
	case c.Window == 0:
		// As many as fill some frames: the state of many more would not fit the cache.
		c.Window = max(bytes/int(c.Size*uint64(c.Words)), least)
	}
	if c.Window < 1 || c.Window > MaxWindow {
		return fmt.Errorf("window %d: want 1 to %d", c.Window, MaxWindow)
	}
	if c.Stream && c.Messages() {
		const credits = 2 * load.CreditEvery
		c.Window = max(c.Window/load.CreditEvery*load.CreditEvery, credits)
	}
	return nil
}

// test returns the test of transfers that this is, of endpoint i.
func (c *Config) test(i int) load.Test {
	switch {
	case c.Messages() && c.Stream:
		return load.Stream
	case c.Messages():
		return load.Trip
	case (c.Op == Put || c.Op == PutSignal) != (c.Both && i%2 > 0):
		return load.Writes
	}
	return load.Reads
}

// back reports whether the messages of endpoint i come from the peer.
func (c *Config) back(i int) bool { return c.Both && c.Messages() && i%2 > 0 }

// operand returns the element 1.
func (c *Config) operand() []byte {
	one, err := value.Parse(c.Datatype, "1")
	if err != nil {
		panic(err) // each datatype has it
	}
	return one
}

// Sizes turns a list such as "8,64,4KiB" or "all" into sizes. All are the powers of two
// from an element to most.
func Sizes(list string, element, most uint64) (sizes []uint64, err error) {
	for s := range strings.SplitSeq(list, ",") {
		if s == "all" {
			for n := max(element, load.WordSize); n <= most; n *= 2 {
				sizes = append(sizes, n)
			}
			continue
		}
		n, err := show.ParseSize(s)
		if err == nil && n == 0 {
			err = fmt.Errorf("size %q: want 1 byte or more", s)
		}
		if err != nil {
			return nil, fmt.Errorf("%w, or all", err)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// ParsePercentiles turns a list such as "50,99,99.99" into numbers.
func ParsePercentiles(list string) (all []float64, err error) {
	for s := range strings.SplitSeq(list, ",") {
		p, err := strconv.ParseFloat(s, 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return nil, fmt.Errorf("percentile %q: want a list of numbers from 0 to 100, such as 50,99,99.99", s)
		}
		all = append(all, p)
	}
	return all, nil
}
