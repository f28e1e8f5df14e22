// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// slot is a post in flight; completions carry a pointer to it.
type slot struct {
	posted time.Duration // of the generator's clock
	ep     *fi.Endpoint
	result []byte
	words  []mr.Extent // of a post with several
}

// Generator keeps a window of posts in flight. One goroutine uses it at a time.
type Generator struct {
	Latency histogram.Histogram // from posting to completion, of each operation
	Done    uint64              // operations that completed with success
	Posts   uint64              // posts so far

	c      Config
	cq     *fi.CompletionQueue
	free   []*slot
	batch  []fi.Completion
	msg    fi.Msg
	offset uint64 // of the next operation, from the region's base on
	limit  uint64 // offsets are below
	turn   uint64 // of the keys
	eps    []*fi.Endpoint
	epTurn int // of the endpoints

	start time.Time
	now   time.Duration // since start, as read last
	empty uint          // how many times there was nothing to collect
}

// New makes endpoints and connects them to a peer, which has to answer.
func New(ctx context.Context, dom *xdpfab.Domain, peer string, c Config) (*Generator, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g := &Generator{
		Latency: histogram.New(), c: c, batch: make([]fi.Completion, min(c.Window, 1024)), msg: c.message(),
		start: time.Now(),
		limit: c.size(), offset: uint64(c.First) * uint64(c.Elements*c.Kind.Size()),
	}
	var err error
	if g.cq, err = dom.NewCompletionQueue(fi.CQAttr{Size: max(c.Window, 2)}); err != nil {
		return nil, err
	}
	for range c.Endpoints {
		ep, err := g.endpoint(ctx, dom, peer)
		if err != nil {
			return nil, err
		}
		g.eps = append(g.eps, ep)
	}
	g.slots()
	return g, nil
}

func (g *Generator) endpoint(ctx context.Context, dom *xdpfab.Domain, peer string) (*fi.Endpoint, error) {
	av, err := dom.NewAddressVector()
	if err != nil {
		return nil, err
	}
	if g.msg.Dest, err = av.Insert(ctx, peer); err != nil {
		return nil, err
	}
	ep, err := dom.NewEndpoint(xdpfab.EndpointAttr{Number: fi.AnyNumber, InitiateOnly: true,
		Size: max(g.c.Window/g.c.Endpoints, 16), MsgOrder: g.c.Order})
	if err != nil {
		return nil, err
	}
	return ep, errors.Join(ep.Bind(av, 0), ep.Bind(g.cq, 0), ep.Enable())
}

// slots gives each endpoint its share of the window; if the window is smaller than
// the number of endpoints, they take turns.
func (g *Generator) slots() {
	c := &g.c
	each := c.Elements * c.Scatter * c.Kind.Size()
	results := make([]byte, c.Window*each)
	g.c.Window = max(c.Window/c.Endpoints*c.Endpoints, min(c.Window, c.Endpoints))
	for i := range c.Window {
		s := &slot{ep: g.eps[i%c.Endpoints]}
		if c.Kind.form != atomic.Base {
			s.result, results = results[:each:each], results[each:]
		}
		if c.Scatter > 1 {
			s.words = make([]mr.Extent, c.Scatter)
		}
		g.free = append(g.free, s)
	}
}

// Free returns how many posts the window has room for.
func (g *Generator) Free() int { return len(g.free) }

// InFlight returns how many posts have not completed.
func (g *Generator) InFlight() int { return g.c.Window - len(g.free) }

// Now returns the generator's clock, as it was read last: with the latest completion,
// or a little later. It is monotonic, and starts at New.
func (g *Generator) Now() time.Duration { return g.now }

// Tick reads the clock.
func (g *Generator) Tick() time.Duration {
	g.now = time.Since(g.start)
	return g.now
}

// Fill posts up to n times, counting from the time that the clock was read last; the
// engine is told with the last one. It ends early when the queue is full.
func (g *Generator) Fill(n int) error {
	for n = min(n, len(g.free)); n > 0; n-- {
		if posted, err := g.Post(g.now, n > 1); !posted {
			return err
		}
	}
	return nil
}

// Post posts the next operation, whose latency counts from the given time; more says
// that another follows at once. There has to be room in the window. It posts
// nothing, without an error, when the queue is full.
func (g *Generator) Post(from time.Duration, more bool) (bool, error) {
	s := g.free[len(g.free)-1]
	if s.posted = from; g.c.Window < g.c.Endpoints {
		s.ep = g.eps[g.epTurn]
	}
	offset := g.offset
	g.msg.Context, g.msg.Offset, g.msg.Result, g.msg.RMA = s, g.c.Region.Base+offset, s.result, s.words
	if s.words != nil {
		g.msg.Offset, offset = 0, g.scatter(s.words, offset)
	}
	var flags fi.OpFlags
	if more {
		flags = fi.FlagMore
	}
	if err := g.c.Kind.post(s.ep, &g.msg, flags); err != nil {
		if errors.Is(err, fi.ErrAgain) {
			return false, nil
		}
		return false, err
	}
	g.free = g.free[:len(g.free)-1]
	g.Posts++
	g.epTurn = (g.epTurn + 1) % g.c.Endpoints
	if g.c.Keys > 0 {
		g.nextKey()
		return true, nil
	}
	if g.offset = offset; s.words == nil {
		g.offset = g.next(offset)
	}
	return true, nil
}

// scatter fills the words of a post, each of one element, from an offset on, and
// returns where the next one begins.
func (g *Generator) scatter(words []mr.Extent, offset uint64) uint64 {
	base, key, limit, size := g.c.Region.Base, g.c.Region.Key, g.limit, uint64(g.c.Kind.Size())
	for i := range words {
		words[i] = mr.Extent{Offset: base + offset, Key: key, Count: 1}
		if offset += size; offset >= limit {
			offset = 0
		}
	}
	return offset
}

// next returns where the operation after the one at offset goes.
func (g *Generator) next(offset uint64) uint64 {
	if offset += uint64(g.c.Elements * g.c.Kind.Size()); offset >= g.limit {
		return 0
	}
	return offset
}

// nextKey goes through the keys in an order that defeats caches.
func (g *Generator) nextKey() {
	const stride = 7919 // a prime
	g.turn = (g.turn + stride) % uint64(g.c.Keys)
	g.msg.Key = 1 + g.turn
}

// tickEvery is how many empty collections there are between two looks at the
// clock.
const tickEvery = 64

// Collect takes completions, if there are any, and reads the clock once for all of
// them. With wait it waits for one, if something is in flight: with manual progress it
// is reading that makes progress, otherwise there is nothing better to do.
//
// The error is that of an operation, which has then completed, or of the queue.
func (g *Generator) Collect(ctx context.Context, wait bool) error {
	n, err := g.cq.Read(g.batch)
	if err == nil && n == 0 && wait && g.InFlight() > 0 {
		if err = g.cq.Wait(ctx, 1); err == nil {
			n, err = g.cq.Read(g.batch)
		}
	}
	if err != nil {
		return g.failure(err)
	}
	if n > 0 {
		g.Tick()
		g.retire(g.batch[:n])
	} else if g.empty++; g.empty%tickEvery == 0 {
		g.Tick()
	}
	return nil
}

// retire counts completions. Operations that were posted together mostly complete
// together.
func (g *Generator) retire(batch []fi.Completion) {
	for i := 0; i < len(batch); {
		posted, first := batch[i].Context.(*slot).posted, i
		for ; i < len(batch); i++ {
			s := batch[i].Context.(*slot)
			if s.posted != posted {
				break
			}
			g.free = append(g.free, s)
		}
		g.Latency.Record(g.now-posted, int64((i-first)*g.c.Scatter))
	}
	g.Done += uint64(len(batch) * g.c.Scatter)
}

// failure describes why the completion queue returned no success.
func (g *Generator) failure(err error) error {
	if c, ok := g.cq.ReadErr(); ok {
		g.free = append(g.free, c.Context.(*slot))
		return c.Err
	}
	return err
}

// Sum reads the elements and adds them up, modulo what Kind.Mask has bits for: of longer
// elements the low words alone count. Nothing may be in flight.
func (g *Generator) Sum(ctx context.Context) (total uint64, err error) {
	size := g.limit
	if g.c.Keys > 0 { // they lie anywhere in the region
		size = g.c.Region.Size
	}
	each := g.c.Kind.Size()
	buf := make([]byte, size)
	s := g.free[len(g.free)-1]
	msg := fi.Msg{Result: buf, Count: len(buf) / each, Offset: g.c.Region.Base, Key: g.c.Region.Key,
		Dest: g.msg.Dest, Datatype: g.c.Kind.dt, Op: atomic.Read, Context: s}
	if err := s.ep.FetchAtomic(&msg, 0); err != nil {
		return 0, err
	}
	g.free = g.free[:len(g.free)-1]
	if err := g.cq.Wait(ctx, 1); err != nil {
		return 0, err
	}
	if _, err := g.cq.Read(g.batch[:1]); err != nil {
		return 0, g.failure(err)
	}
	g.free = append(g.free, s)
	var word [WordSize]byte
	for ; len(buf) > 0; buf = buf[each:] {
		copy(word[:], buf[:min(each, WordSize)])
		total += binary.LittleEndian.Uint64(word[:])
	}
	return total & g.c.Kind.Mask(), nil
}
