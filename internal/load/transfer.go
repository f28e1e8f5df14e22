// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Test describes what a Transfer does. bench/c/transfer.h has the same for the peers.
type Test string

// The tests.
const (
	Trip   Test = "trip"   // messages there and back, one at a time
	Stream Test = "stream" // messages one way
	Writes Test = "write"  // writes of the peer's memory, Flight under way
	Reads  Test = "read"   // reads of it
)

// CreditEvery is for how many messages of a stream the receiver gives one credit, a
// message of 8 bytes. So messages count when the receiver has them, whatever a send's
// completion means.
const CreditEvery = 16

// TransferConfig describes what a Transfer measures, in the same words at both sides.
type TransferConfig struct {
	Test   Test
	Size   int // bytes of a message, a write or a read; 8 or more
	Flight int // messages without a credit, or accesses under way; 1 for trips
}

func (c *TransferConfig) check() error {
	switch {
	case c.Test != Trip && c.Test != Stream && c.Test != Writes && c.Test != Reads:
		return fmt.Errorf("test %q: want trip, stream, write or read", c.Test)
	case c.Size < WordSize:
		return fmt.Errorf("size %d: want %d bytes or more", c.Size, WordSize)
	case c.Flight < 1 || c.Test == Trip && c.Flight > 1:
		return fmt.Errorf("flight %d: want 1 or more, and 1 for trips", c.Flight)
	case c.Test == Stream && (c.Flight < 2*CreditEvery || c.Flight%CreditEvery > 0):
		return fmt.Errorf("flight %d of a stream: want a multiple of %d, at least two of them", c.Flight, CreditEvery)
	}
	return nil
}

// Memory returns how many bytes of the peer's memory are accessed, from its beginning on.
func (c *TransferConfig) Memory() int {
	if c.Test == Trip || c.Test == Stream {
		return 0
	}
	return c.Size * c.Flight
}

// Transfer is one side of a test: the measuring side calls Run, the other one Serve.
// One goroutine uses it.
type Transfer struct {
	Latency histogram.Histogram // of trips and accesses
	Done    uint64              // trips, accesses, or messages that there were credits for

	t       Transport
	c       TransferConfig
	batch   []fi.Completion
	idle    turn         // to send or to access with
	arrived []*operation // receives that hold a message
	taken   []*operation // those that are looked at, while others arrive
	rest    []*operation // receives that are not posted yet
	local   []byte       // what is written, or where to put what is read

	unacknowledged int    // messages without a credit
	number         uint64 // of the next message
	start, now     time.Duration
	clock          func() time.Duration
	polls          uint
}

// NewTransfer makes one side of a test. The side that serves memory has registered it.
func NewTransfer(t Transport, c TransferConfig, serves bool) (*Transfer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	begun := time.Now()
	x := &Transfer{Latency: histogram.New(), t: t, c: c, batch: make([]fi.Completion, 2*c.Flight),
		clock: func() time.Duration { return time.Since(begun) }}
	switch {
	case c.Test == Trip:
		x.idle, x.rest = inTurn(operations(sending, 2, c.Size)), operations(receiving, 1, c.Size)
	case c.Test == Stream && serves:
		x.idle, x.rest = inTurn(operations(sending, c.Flight/CreditEvery, WordSize)), operations(receiving,
			c.Flight, c.Size)
	case c.Test == Stream:
		x.idle, x.rest = inTurn(operations(sending, c.Flight, c.Size)), operations(receiving,
			c.Flight/CreditEvery, WordSize)
	case !serves:
		all := operations(accessing, c.Flight, c.Size)
		x.idle, x.local = inTurn(all), all[0].buf[:c.Memory():c.Memory()]
	}
	x.arrived, x.taken = make([]*operation, 0, len(x.rest)), make([]*operation, 0, len(x.rest))
	return x, nil
}

// Local returns this side's copy of the memory that is accessed: writes are from it, and
// reads into it. It may be touched while nothing is under way.
func (x *Transfer) Local() []byte { return x.local }

// Run measures for a while, and longer if nothing is done by then. It can be called
// again.
func (x *Transfer) Run(ctx context.Context, d time.Duration) error {
	x.now = x.clock()
	x.start = x.now
	done := x.Done
	for x.now < x.start+d || x.Done == done {
		if err := x.Step(ctx); err != nil {
			return err
		}
	}
	if x.c.Memory() > 0 {
		return x.Drain(ctx)
	}
	return nil
}

// Drain waits until no access and no send of a stream is under way, and until no message
// can be acknowledged any more: up to CreditEvery-1 of a stream get no credit.
func (x *Transfer) Drain(ctx context.Context) error {
	for x.c.Test != Trip && x.idle.n < x.c.Flight || x.unacknowledged >= CreditEvery {
		if err := x.poll(ctx); err != nil {
			return err
		}
		x.credit()
	}
	return nil
}

// Messages returns how many messages this side has sent, or received if it serves.
func (x *Transfer) Messages() uint64 { return x.number }

// Step is one turn of the side that measures: it posts what there is room for, and takes
// completions; of trips it is a whole one.
func (x *Transfer) Step(ctx context.Context) error {
	if err := x.postReceives(ctx); err != nil {
		return err
	}
	switch x.c.Test {
	case Trip:
		return x.trip(ctx)
	case Stream:
		if err := x.sendFree(); err != nil {
			return err
		}
		if err := x.poll(ctx); err != nil {
			return err
		}
		x.credit()
		return nil
	default:
		if err := x.accessAll(); err != nil {
			return err
		}
		return x.poll(ctx)
	}
}

// credit counts the credits that have arrived.
func (x *Transfer) credit() {
	if x.c.Test != Stream {
		return
	}
	credits := x.take()
	x.unacknowledged -= CreditEvery * len(credits)
	x.Done += CreditEvery * uint64(len(credits))
	x.rest = append(x.rest, credits...)
}

// trip sends a message with a number, and waits until it comes back.
func (x *Transfer) trip(ctx context.Context) error {
	sent := x.now
	if err := x.send(ctx, x.number); err != nil {
		return err
	}
	for len(x.arrived) == 0 {
		if err := x.poll(ctx); err != nil {
			return err
		}
	}
	answers := x.take()
	if got := binary.LittleEndian.Uint64(answers[0].buf); got != x.number {
		return fmt.Errorf("message %d came back as message %d", x.number, got)
	}
	x.Latency.Record(x.now-sent, 1)
	x.number++
	x.Done++
	x.rest = append(x.rest, answers...)
	return nil
}

// sendFree sends as many messages as there are credits for.
func (x *Transfer) sendFree() error {
	for x.unacknowledged < x.c.Flight && x.idle.n > 0 {
		if posted, err := x.sendNext(x.number); !posted {
			return err
		}
		x.number++
		x.unacknowledged++
	}
	return nil
}

// accessAll posts all accesses that are not under way.
func (x *Transfer) accessAll() error {
	for x.idle.n > 0 {
		o := x.idle.first()
		o.posted = x.now
		if posted, err := x.post(o); !posted {
			return err
		}
		x.idle.drop()
	}
	return nil
}

// Serve is the other side of Run, until the context ends.
func (x *Transfer) Serve(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := x.ServeStep(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// ServeStep is one turn of the side that serves.
func (x *Transfer) ServeStep(ctx context.Context) error {
	err := x.postReceives(ctx)
	if err == nil {
		err = x.poll(ctx)
	}
	for _, o := range x.take() {
		if err == nil {
			err = x.serve(ctx, o)
		}
	}
	return err
}

// serve returns a message, or counts it and gives a credit. Its receive is posted again
// before that, so that one is always there for what the credit lets come.
func (x *Transfer) serve(ctx context.Context, o *operation) error {
	number := binary.LittleEndian.Uint64(o.buf)
	x.rest = append(x.rest, o)
	if err := x.postReceives(ctx); err != nil {
		return err
	}
	if number != x.number {
		return fmt.Errorf("message %d arrived: want message %d", number, x.number)
	}
	x.number++
	if x.c.Test == Stream && x.number%CreditEvery > 0 {
		return nil
	}
	return x.send(ctx, number)
}

// send sends a message with a number, however long there is no room.
func (x *Transfer) send(ctx context.Context, number uint64) error {
	for {
		if x.idle.n > 0 {
			if posted, err := x.sendNext(number); posted || err != nil {
				return err
			}
		}
		if err := x.poll(ctx); err != nil {
			return err
		}
	}
}

// sendNext posts an idle send with a number.
func (x *Transfer) sendNext(number uint64) (bool, error) {
	o := x.idle.first()
	binary.LittleEndian.PutUint64(o.buf, number)
	posted, err := x.post(o)
	if posted {
		x.idle.drop()
	}
	return posted, err
}

// take returns the receives that hold a message, until it is called again.
func (x *Transfer) take() []*operation {
	x.taken, x.arrived = x.arrived, x.taken[:0]
	return x.taken
}

func (x *Transfer) postReceives(ctx context.Context) error {
	for len(x.rest) > 0 {
		posted, err := x.post(x.rest[len(x.rest)-1])
		if posted {
			x.rest = x.rest[:len(x.rest)-1]
		} else if err == nil {
			err = x.poll(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// post reports whether there was room.
func (x *Transfer) post(o *operation) (posted bool, err error) {
	switch {
	case o.kind == receiving:
		err = x.t.Receive(o.buf, o)
	case o.kind == sending:
		err = x.t.Send(o.buf, o)
	case x.c.Test == Writes:
		err = x.t.Write(o.buf, o.offset, o)
	default:
		err = x.t.Read(o.buf, o.offset, o)
	}
	if errors.Is(err, fi.ErrAgain) {
		return false, nil
	}
	return err == nil, err
}

// poll takes completions. It reads the clock if there were some, and now and then.
func (x *Transfer) poll(ctx context.Context) error {
	n, err := x.t.Collect(ctx, x.batch)
	if err != nil {
		return err
	}
	if x.polls++; n == 0 && x.polls%tickEvery > 0 {
		return nil
	}
	if x.now = x.clock(); n == 0 {
		return context.Cause(ctx)
	}
	for i := range x.batch[:n] {
		switch o := x.batch[i].Context.(*operation); o.kind {
		case receiving:
			x.arrived = append(x.arrived, o)
		case accessing:
			x.Latency.Record(x.now-o.posted, 1)
			x.Done++
			fallthrough
		case sending:
			x.idle.add(o)
		}
	}
	return nil
}
