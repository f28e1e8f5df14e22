// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A copy goes in chunks, several under way at a time, so that a round trip
// costs little and memory is bounded.
const (
	chunkSize = 1 << 20 // bytes
	inFlight  = 4       // chunks
)

// chunk is a part of a copy under way.
type chunk struct {
	at   uint64 // bytes from the beginning of the region
	buf  []byte
	room [chunkSize]byte // that buf is a part of
	err  error           // of next
	done chan error      // has the result of carry
}

// chunks are the steps of a copy.
type chunks struct {
	next   func(*chunk) (more bool, err error) // says what the next chunk is; it may wait
	carry  func(context.Context, *chunk) error // reads or writes it, while others are under way
	finish func(*chunk) error                  // has chunks that were carried, in their order
}

// run copies until next has no more, or returns the error of the first chunk that failed:
// all before it have been finished, and none behind it. A next that waits for input is
// left behind then.
func (s chunks) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var carriers sync.WaitGroup
	defer carriers.Wait()
	defer cancel()
	free, begun := make(chan *chunk, inFlight), make(chan *chunk, inFlight)
	for range inFlight {
		free <- &chunk{done: make(chan error, 1)}
	}
	go s.begin(ctx, free, begun)
	var queue []*chunk // under way, in their order
	for more := true; more || len(queue) > 0; {
		var first chan error
		if len(queue) > 0 {
			first = queue[0].done
		}
		select {
		case <-ctx.Done():
			return s.interrupted(queue, context.Cause(ctx))
		case c, is := <-begun:
			if !is {
				begun, more = nil, false
				continue
			}
			queue = append(queue, c)
			carriers.Go(func() { c.done <- s.begun(ctx, c) })
		case err := <-first:
			c := queue[0]
			switch {
			case err == nil:
				err = s.finish(c)
			case ctx.Err() != nil:
				c.done <- err
				return s.interrupted(queue, context.Cause(ctx))
			}
			if err != nil {
				return err
			}
			queue = queue[1:]
			free <- c
		}
	}
	return nil
}

// interrupted finishes those chunks under way that were carried nevertheless, up to the
// first that was not. It returns why the copy was interrupted, and that the outcome of
// that chunk is unknown, if it is.
func (s chunks) interrupted(queue []*chunk, why error) error {
	for _, c := range queue {
		err := <-c.done
		if err == nil {
			err = s.finish(c)
		}
		switch {
		case errors.Is(err, xdpfab.ErrOutcomeUnknown):
			return fmt.Errorf("%w: %w", xdpfab.ErrOutcomeUnknown, why)
		case err != nil:
			return why
		}
	}
	return why
}

func (s chunks) begun(ctx context.Context, c *chunk) error {
	if c.err != nil {
		return c.err
	}
	return s.carry(ctx, c)
}

// begin begins the chunks in their order, as long as there are free ones.
func (s chunks) begin(ctx context.Context, free <-chan *chunk, begun chan<- *chunk) {
	for {
		var c *chunk
		select {
		case c = <-free:
		case <-ctx.Done():
			return
		}
		var more bool
		if more, c.err = s.next(c); !more && c.err == nil {
			close(begun)
			return
		}
		begun <- c // has room for all there are
		if c.err != nil {
			return
		}
	}
}
