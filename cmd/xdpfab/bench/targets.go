// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Verification is what was checked at a peer after a run.
type Verification struct {
	What         string // "sum", "bytes", "messages"; "" if there is nothing to check
	Acknowledged uint64 // of a sum: the growth that acknowledged operations make
	Growth       uint64 // of the region's elements
	Sent         uint64 // messages
}

// atomics makes the workers of a target that do atomic operations.
func (x *run) atomics(ctx context.Context, t *target) error {
	kind, err := x.c.kind()
	if err != nil {
		return err
	}
	elements := int(x.c.Size) / kind.Size()
	words := 1
	if t.Region.Size > 0 && t.Region.Size < x.c.Size {
		return short(t, x.c.Size)
	}
	if x.c.Spread {
		if t.Region.Size == 0 {
			return errors.New("--spread wants --region: a key alone does not tell the size")
		}
		words = int(min(t.Region.Size/x.c.Size, MaxWords))
	}
	t.words = words
	generator := func(window, first int) (*load.Generator, error) {
		return load.New(ctx, x.dom, t.Addr, load.Config{
			Kind: kind, Region: t.Region, Window: window, Endpoints: 1, Words: words, First: first,
			Elements: elements, Scatter: x.c.Words, Operand: x.c.operand(),
		})
	}
	reader, err := generator(1, 0)
	if err != nil {
		return err
	}
	for i := range x.c.Endpoints {
		// Endpoints begin at different words, so that they rarely change the same one.
		g, err := generator(x.c.Window, i*words/x.c.Endpoints)
		if err != nil {
			return err
		}
		x.worker(t, i, atomics{g, x.wait()})
	}
	before, err := reader.Sum(ctx)
	t.verify = func(ctx context.Context) (Verification, error) {
		return t.sum(ctx, kind, reader, before, uint64(elements))
	}
	return err
}

// sum compares the growth of the words with the additions that were acknowledged.
func (t *target) sum(ctx context.Context, kind load.Kind, reader *load.Generator, before, elements uint64) (
	v Verification, err error) {
	if !kind.Adds() && !kind.Keeps() {
		return v, nil
	}
	after, err := reader.Sum(ctx)
	if err != nil {
		return v, fmt.Errorf("reading the sum: %w", err)
	}
	v = Verification{What: "sum", Growth: (after - before) & kind.Mask()}
	for _, w := range t.workers {
		if kind.Adds() {
			v.Acknowledged += w.done() * elements
		}
	}
	v.Acknowledged &= kind.Mask()
	if v.Growth != v.Acknowledged {
		return v, fmt.Errorf("verification failed: the words of %s grew by %d, but %d adds were acknowledged; does "+
			"another program write there?", nameOf(t.Region), v.Growth, v.Acknowledged)
	}
	return v, nil
}

// nameOf names a region in errors.
func nameOf(r xdpfab.RemoteRegion) string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("key %#x", r.Key)
}

func short(t *target, want uint64) error {
	return fmt.Errorf("region %s has %d bytes: want %d or more for this --size: %w", nameOf(t.Region), t.Region.Size,
		want, xdpfab.ErrOutOfBounds)
}

// transfers makes the workers of a target that send messages, or write and read.
func (x *run) transfers(ctx context.Context, t *target) error {
	if x.c.Messages() {
		return x.messages(ctx, t)
	}
	flight, behind := x.c.Window, x.behind()
	if t.Region.Size > 0 {
		if t.Region.Size < x.c.Size+behind {
			return short(t, x.c.Size+behind)
		}
		flight = min(flight, int((t.Region.Size-behind)/x.c.Size))
	}
	word, before, err := x.signalled(ctx, t, flight)
	if err != nil {
		return err
	}
	var pattern []byte
	var readers []*load.Transfer
	for i := range x.c.Endpoints {
		line, err := load.NewLine(x.dom, load.LineAttr{Number: fi.AnyNumber, Flight: flight, Wait: x.wait})
		if err != nil {
			return err
		}
		if err := line.Reach(ctx, t.Addr); err != nil {
			return err
		}
		line.Access(t.Region)
		test := x.c.test(i)
		l, err := load.NewTransfer(line, load.TransferConfig{Test: test, Size: int(x.c.Size), Flight: flight}, false)
		if err != nil {
			return err
		}
		if test == load.Writes {
			if pattern == nil {
				pattern = x.pattern(len(l.Local()))
			}
			copy(l.Local(), pattern) // all write the same, so that it can be checked
			if behind > 0 {
				line.Signal(t.Region, word)
			}
		} else {
			readers = append(readers, l)
		}
		x.worker(t, i, transfers{l})
	}
	t.verify = func(ctx context.Context) (Verification, error) {
		v, err := x.bytes(ctx, t, flight*int(x.c.Size), pattern, readers)
		if err == nil && behind > 0 {
			err = x.signals(ctx, t, word, before)
		}
		return v, err
	}
	return nil
}

// bytes compares the peer's memory with what was written there, and with what was read
// last if nothing was written. An access that has not happened has no bytes to check.
func (x *run) bytes(ctx context.Context, t *target, size int, pattern []byte, readers []*load.Transfer) (
	v Verification, err error) {
	p, err := x.dom.Dial(ctx, t.Addr)
	if err != nil {
		return v, err
	}
	there := make([]byte, size)
	if err := errors.Join(p.Read(ctx, t.Region, 0, there), p.Close()); err != nil {
		return v, fmt.Errorf("reading the region back: %w", err)
	}
	check := func(what string, done uint64, got []byte) error {
		n := min(uint64(size), done*x.c.Size)
		if v.What = "bytes"; !bytes.Equal(there[:n], got[:n]) {
			return fmt.Errorf("verification failed: region %s has other bytes than were %s; does another program "+
				"write there?", nameOf(t.Region), what)
		}
		return nil
	}
	if pattern != nil {
		most := uint64(0)
		for i, w := range t.workers {
			if x.c.test(i) == load.Writes {
				most = max(most, w.done())
			}
		}
		return v, check("written", most, pattern)
	}
	for _, r := range readers {
		if err := check("read", r.Done, r.Local()); err != nil {
			return v, err
		}
	}
	return v, nil
}

// pattern returns bytes that no other run writes. All of a run write the same, wherever
// they begin alike: two of its peers may be one.
func (x *run) pattern(n int) []byte {
	rng, b := rand.New(rand.NewPCG(x.seed, 0)), make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
