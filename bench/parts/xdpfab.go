// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// Where things are in the region "bench" of the daemon, in bytes.
const (
	region   = "bench"
	lockAt   = 0
	wordAt   = 4096
	signalAt = 8192
	putAt    = 16384
)

// ofXdpfab are the tests of the library, with a daemon as the home.
func ofXdpfab(ctx context.Context, s *settings, test string) (loop, func(uint64) error, error) {
	dom, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	to := s.peer
	if test == "call" {
		to += fmt.Sprint("/", function)
	}
	peer, err := dom.Dial(ctx, to)
	if err != nil {
		return nil, nil, errors.Join(err, dom.CloseAll())
	}
	do, check, err := (&home{dom, peer, s}).test(ctx, test)
	if err != nil {
		return nil, nil, errors.Join(err, dom.CloseAll())
	}
	return do, func(ops uint64) error { return errors.Join(check(ctx, ops), dom.CloseAll()) }, nil
}

// open opens the interface.
func (s *settings) open(ctx context.Context) (*xdpfab.Domain, error) {
	attr := xdpfab.DomainAttr{Attach: fi.AttachNever}
	if err := attr.Progress.UnmarshalText([]byte(s.progress)); err != nil {
		return nil, err
	}
	return xdpfab.Open(ctx, s.ifname, attr)
}

// home is the daemon, or a process that serves calls.
type home struct {
	dom  *xdpfab.Domain
	peer *xdpfab.Peer
	*settings
}

// check compares what is in the memory with the number of operations.
type check func(ctx context.Context, ops uint64) error

// unchecked is for loops that check each operation.
func unchecked(context.Context, uint64) error { return nil }

func (h *home) test(ctx context.Context, test string) (loop, check, error) {
	switch test {
	case "locks":
		lock, err := h.locker(ctx)
		return lockLoop(lock), unchecked, err
	case "handover":
		var o handover
		for range h.clients {
			lock, err := h.locker(ctx)
			if err != nil {
				return nil, nil, err
			}
			o.lockers = append(o.lockers, lock)
		}
		return o.loop, unchecked, nil
	case "adds":
		return h.adds(ctx)
	case "vector":
		return h.vector(ctx)
	case "put", "put-signal":
		return h.put(ctx, test == "put-signal")
	case "call":
		return h.call(ctx)
	case "message":
		return h.message(ctx)
	}
	return nil, nil, unknown("xdpfab", test)
}

// locker is a client of the lock. In new memory the first one waits for a lease.
func (h *home) locker(ctx context.Context) (locker, error) {
	m, err := sync.NewMutex(ctx, sync.Place{Home: h.peer, Region: region, Offset: lockAt}, lease)
	if err != nil {
		return nil, err
	}
	lock := func(ctx context.Context) (func() error, error) {
		held, err := m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		if h.startUnlock {
			return held.StartUnlock, nil
		}
		return held.Unlock, nil
	}
	unlock, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return lock, unlock()
}

// adds has depth additions to one word in flight, and waits for all of them.
func (h *home) adds(ctx context.Context) (loop, check, error) {
	word, err := xdpfab.Word[uint64](ctx, h.peer, region, wordAt/8)
	if err != nil || h.depth == 1 {
		return each(1, func(ctx context.Context) error { _, err := word.Add(ctx, 1); return err }), sum(word), err
	}
	pending := make([]*xdpfab.Pending[uint64], h.depth)
	return each(h.depth, func(ctx context.Context) error {
		for i := range pending {
			pending[i] = word.StartAdd(ctx, 1)
		}
		for _, p := range pending {
			if _, err := p.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}), sum(word), nil
}

// vector adds to one word depth times by one call, which returns each value.
func (h *home) vector(ctx context.Context) (loop, check, error) {
	words, err := xdpfab.Vector[uint64](ctx, h.peer, region)
	if err != nil {
		return nil, nil, err
	}
	at, ones := slices.Repeat([]uint64{wordAt / 8}, h.depth), slices.Repeat([]uint64{1}, h.depth)
	values := make([]uint64, h.depth)
	return each(h.depth, func(ctx context.Context) error { return words.Add(ctx, at, ones, values) }),
		sum(words.At(wordAt / 8)), nil
}

// sum checks a word to which every operation has added 1.
func sum(word xdpfab.Remote[uint64]) check {
	return func(ctx context.Context, ops uint64) error {
		n, err := word.Load(ctx)
		if err == nil && n != ops {
			err = fmt.Errorf("the word is %d after %d additions of 1", n, ops)
		}
		return err
	}
}

// put writes bytes, and adds 1 to a word with each write if there is to be a signal.
func (h *home) put(ctx context.Context, signals bool) (loop, check, error) {
	r, err := h.peer.Lookup(ctx, region)
	if err != nil {
		return nil, nil, err
	}
	b := slices.Repeat([]byte{1}, h.size)
	if !signals {
		return each(1, func(ctx context.Context) error { return h.peer.Write(ctx, r, putAt, b) }),
			unchecked, nil
	}
	signal := xdpfab.Signal{Region: r, Index: signalAt / 8, Op: atomic.Sum, Value: 1}
	return each(1, func(ctx context.Context) error { return h.peer.WriteSignal(ctx, r, putAt, b, signal) }),
		sum(xdpfab.WordAt[uint64](h.peer, r, signalAt/8)), nil
}
