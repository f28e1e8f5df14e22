// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

const wordSize = 8 // bytes of a uint64

// form is how the sum of an operation is asked for. A compare never matches, so
// that it leaves the word alone.
type form struct {
	op   atomic.Op
	adds bool
	post func(*xdpfab.Endpoint, *xdpfab.Msg, uint64) error
}

var forms = map[string]form{
	"base":    {atomic.Sum, true, (*xdpfab.Endpoint).AtomicMsg},
	"fetch":   {atomic.Sum, true, (*xdpfab.Endpoint).FetchAtomicMsg},
	"compare": {atomic.Cswap, false, (*xdpfab.Endpoint).CompareAtomicMsg},
}

// slot is a post in flight; completions carry a pointer to it.
type slot struct {
	posted time.Time
	ep     *xdpfab.Endpoint
	result []byte
	words  []mr.Extent // of a post with several
}

// initiator keeps a window full, on one thread.
type initiator struct {
	out     io.Writer // of the report
	s       *settings
	dom     *xdpfab.Domain
	form    form
	cq      *xdpfab.CompletionQueue
	free    []*slot
	window  int // len(free) when nothing is in flight
	batch   []xdpfab.Completion
	msg     xdpfab.Msg
	offset  uint64 // of the next operation
	turn    uint64 // of the regions
	eps     []*xdpfab.Endpoint
	epTurn  int    // of the endpoints
	whole   uint64 // key of the region of all the memory
	limit   uint64 // offsets are below
	done    uint64 // operations that completed
	latency measure.Histogram
}

func initiate(ctx context.Context, dom *xdpfab.Domain, s *settings) error {
	runtime.LockOSThread()
	if s.first {
		return first(ctx, dom, s)
	}
	in, err := newInitiator(ctx, dom, s)
	if err != nil {
		return err
	}
	return in.run(ctx)
}

// run measures, and checks that the words have grown by what was acknowledged.
func (in *initiator) run(ctx context.Context) error {
	before, err := in.sum(ctx)
	if err != nil {
		return err
	}
	if err := in.measure(ctx); err != nil {
		return err
	}
	after, err := in.sum(ctx)
	if err != nil {
		return err
	}
	if want := in.done * uint64(in.s.elements); in.form.adds && after-before != want {
		return fmt.Errorf("the words grew by %d, but %d adds were acknowledged", after-before, want)
	}
	return nil
}

func newInitiator(ctx context.Context, dom *xdpfab.Domain, s *settings) (*initiator, error) {
	f, ok := forms[s.op]
	if !ok || s.window < 1 || s.endpoints < 1 || s.elements < 1 || s.words < 1 || s.scatter < 1 {
		return nil, fmt.Errorf("%+v: want op base, fetch or compare, at least one endpoint, post in flight, word and element", *s)
	}
	if s.scatter > 1 && (s.elements > 1 || s.regions > 1) {
		return nil, fmt.Errorf("%d words a post: want one element each, in one region", s.scatter)
	}
	in := &initiator{s: s, out: os.Stdout, dom: dom, form: f, latency: measure.NewHistogram(), batch: make([]xdpfab.Completion, min(s.window, 1024))}
	var err error
	if in.cq, err = dom.NewCompletionQueue(xdpfab.CQAttr{Size: max(s.window, 2)}); err != nil {
		return nil, err
	}
	region, err := in.connect(ctx)
	if err != nil {
		return nil, err
	}
	if in.limit = uint64(s.words) * uint64(s.elements) * wordSize; s.regions > 1 {
		in.limit = region.Size
	}
	if in.limit > region.Size {
		return nil, fmt.Errorf("%d words of %d elements: region %s has %d bytes", s.words, s.elements, s.region, region.Size)
	}
	in.whole, in.window = region.Key, len(in.free)
	in.msg = xdpfab.Msg{Count: s.elements * s.scatter, Datatype: atomic.Uint64, Op: f.op}
	if s.scatter == 1 {
		in.msg.Key = region.Key
	}
	for range in.msg.Count {
		in.msg.Buf = binary.LittleEndian.AppendUint64(in.msg.Buf, 1)
		if s.op == "compare" {
			in.msg.Compare = binary.LittleEndian.AppendUint64(in.msg.Compare, 1<<63)
		}
	}
	return in, nil
}

// connect looks the region up and makes the endpoints. Each has a share of the
// window; if there are more endpoints than that, they take turns.
func (in *initiator) connect(ctx context.Context) (xdpfab.Region, error) {
	peer, err := in.dom.Dial(ctx, in.s.peer)
	if err != nil {
		return xdpfab.Region{}, err
	}
	region, err := peer.Lookup(ctx, in.s.region)
	if err != nil {
		return region, err
	}
	each := in.s.elements * in.s.scatter * wordSize
	results := make([]byte, in.s.window*each)
	for range in.s.endpoints {
		ep, err := in.endpoint(ctx, in.s.window/in.s.endpoints)
		if err != nil {
			return region, err
		}
		in.eps = append(in.eps, ep)
	}
	for i := range max(in.s.window/in.s.endpoints*in.s.endpoints, min(in.s.window, in.s.endpoints)) {
		sl := &slot{ep: in.eps[i%in.s.endpoints]}
		if in.s.op != "base" {
			sl.result, results = results[:each:each], results[each:]
		}
		if in.s.scatter > 1 {
			sl.words = make([]mr.Extent, in.s.scatter)
		}
		in.free = append(in.free, sl)
	}
	return region, nil
}

func (in *initiator) endpoint(ctx context.Context, size int) (*xdpfab.Endpoint, error) {
	av, err := in.dom.NewAddressVector()
	if err != nil {
		return nil, err
	}
	if _, err := av.Insert(ctx, in.s.peer); err != nil {
		return nil, err
	}
	size = 1 << bits.Len(uint(max(size, 16)-1)) // the next power of two
	ep, err := in.dom.NewEndpoint(xdpfab.EndpointAttr{Number: xdpfab.AnyNumber, InitiateOnly: true, Size: size})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(in.cq, 0)); err != nil {
		return nil, err
	}
	return ep, ep.Enable()
}

// measure warms up and measures.
func (in *initiator) measure(ctx context.Context) error {
	loop := in.closed
	if in.s.rate > 0 {
		loop = in.open
	}
	if in.s.warmup > 0 {
		if err := loop(ctx, time.Now().Add(in.s.warmup)); err != nil {
			return err
		}
	}
	in.latency.Reset()
	done := in.done
	run := measure.BeginRun(in.out)
	if err := loop(ctx, run.Start().Add(in.s.duration)); err != nil {
		return err
	}
	result := measure.Result{Ops: in.done - done, Latency: in.latency.Percentiles(), Extra: map[string]float64{}}
	if err := run.End(&result); err != nil {
		return err
	}
	return nil
}

// closed keeps the window full until the end, and then takes what is in flight.
func (in *initiator) closed(ctx context.Context, end time.Time) error {
	for now := time.Now(); ; {
		if now.Before(end) && ctx.Err() == nil {
			if err := in.fill(now, len(in.free)); err != nil {
				return err
			}
		} else if len(in.free) == in.window {
			return context.Cause(ctx)
		}
		n, err := in.read(ctx)
		now = time.Now()
		if err != nil {
			return err
		}
		in.retire(in.batch[:n], now)
	}
}

// read takes completions, if there are any. With manual progress that is what moves
// things on; otherwise there is nothing better to do than to wait.
func (in *initiator) read(ctx context.Context) (int, error) {
	n, err := in.cq.Read(in.batch)
	if err == nil && n == 0 && in.s.progress == xdpfab.ProgressAuto && len(in.free) < in.window {
		if err = in.cq.Wait(ctx, 1); err == nil {
			n, err = in.cq.Read(in.batch)
		}
	}
	if err != nil {
		return 0, in.failure(err)
	}
	return n, nil
}

// fill posts up to n operations; the engine is told with the last one.
func (in *initiator) fill(now time.Time, n int) error {
	for ; n > 0; n-- {
		if posted, err := in.post(now, n > 1); !posted {
			return err
		}
	}
	return nil
}

// post posts the next operation, which counts from a time on; more says that
// another follows at once. It posts nothing, without an error, when the queue is
// full.
func (in *initiator) post(from time.Time, more bool) (bool, error) {
	sl := in.free[len(in.free)-1]
	if sl.posted = from; in.s.window < in.s.endpoints {
		sl.ep = in.eps[in.epTurn]
	}
	in.msg.Context, in.msg.Addr, in.msg.Result, in.msg.RMA = sl, in.offset, sl.result, sl.words
	offset := in.offset
	if sl.words != nil {
		in.msg.Addr = 0
	}
	for i := range sl.words {
		sl.words[i] = mr.Extent{Offset: offset, Key: in.whole, Count: 1}
		offset = in.next(offset)
	}
	var flags uint64
	if more {
		flags = xdpfab.FlagMore
	}
	if err := in.form.post(sl.ep, &in.msg, flags); err != nil {
		if errors.Is(err, xdpfab.ErrAgain) {
			return false, nil
		}
		return false, err
	}
	in.free = in.free[:len(in.free)-1]
	in.epTurn = (in.epTurn + 1) % in.s.endpoints
	if in.s.regions > 1 {
		in.nextRegion()
		return true, nil
	}
	if in.offset = offset; sl.words == nil {
		in.offset = in.next(offset)
	}
	return true, nil
}

// next returns where the operation after the one at offset goes.
func (in *initiator) next(offset uint64) uint64 {
	if offset += uint64(in.s.elements) * wordSize; offset >= in.limit {
		return 0
	}
	return offset
}

// nextRegion goes through the keys 1 to regions-1, in no order that a cache likes.
func (in *initiator) nextRegion() {
	const stride = 7919 // a prime
	in.turn = (in.turn + stride) % uint64(in.s.regions-1)
	in.msg.Key = 1 + in.turn
}

// retire counts completions. Those that were posted together end mostly together.
func (in *initiator) retire(batch []xdpfab.Completion, now time.Time) {
	for i := 0; i < len(batch); {
		posted, first := batch[i].Context.(*slot).posted, i
		for ; i < len(batch); i++ {
			sl := batch[i].Context.(*slot)
			if sl.posted != posted {
				break
			}
			in.free = append(in.free, sl)
		}
		in.latency.Record(now.Sub(posted), int64((i-first)*in.s.scatter))
	}
	in.done += uint64(len(batch) * in.s.scatter)
}

// failure describes why the completion queue had no success to give.
func (in *initiator) failure(err error) error {
	if c, ok := in.cq.ReadErr(); ok {
		return c.Err
	}
	return err
}

// sum reads the words and adds them up, modulo 2^64.
func (in *initiator) sum(ctx context.Context) (total uint64, err error) {
	buf := make([]byte, in.limit)
	sl := in.free[0]
	msg := xdpfab.Msg{Result: buf, Count: len(buf) / wordSize, Key: in.whole, Datatype: atomic.Uint64, Op: atomic.Read}
	if err := sl.ep.FetchAtomicMsg(&msg, 0); err != nil {
		return 0, err
	}
	if err := in.cq.Wait(ctx, 1); err != nil {
		return 0, err
	}
	if _, err := in.cq.Read(in.batch[:1]); err != nil {
		return 0, in.failure(err)
	}
	for w := buf; len(w) > 0; w = w[wordSize:] {
		total += binary.LittleEndian.Uint64(w)
	}
	return total, nil
}
