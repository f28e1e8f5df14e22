// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

// Counters at the same time count exactly in a bad network.
func TestCounter(t *testing.T) {
	*times, *patience = 300, try.Patience
	n, ctx := try.New(t, "counters", 4096), try.Context(t)
	n.Faults(try.Bad)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := run(ctx, n.Client, n.Addr); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := n.Word(0).Load(); got != 1200 {
		t.Errorf("counted %d times, want 1200", got)
	}
}

// A count whose answer is late becomes known, and is not repeated.
func TestLateAnswer(t *testing.T) {
	n, ctx := try.New(t, "counters", 4096), try.Context(t)
	hits, err := xdpfab.Word[uint64](ctx, n.Peer(ctx), "counters", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Home.SetFaults(xdpfab.Faults{Loss: 1}); err != nil { // no answer comes
		t.Fatal(err)
	}
	*patience = time.Nanosecond
	heal := make(chan error)
	go func() {
		for n.Word(0).Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		heal <- n.Home.SetFaults(xdpfab.Faults{})
	}()
	got, err := count(ctx, hits)
	for errors.Is(err, xdpfab.ErrNotExecuted) { // the time was over before it left
		*patience *= 4
		got, err = count(ctx, hits)
	}
	if got != 1 || err != nil || n.Word(0).Load() != 1 {
		t.Errorf("the count is %d, %v; the word is %d", got, err, n.Word(0).Load())
	}
	if err := <-heal; err != nil {
		t.Error(err)
	}
}

// A count that nobody knows the outcome of is not repeated either.
func TestUnknown(t *testing.T) {
	n, ctx := try.New(t, "counters", 4096), try.Context(t)
	hits, err := xdpfab.Word[uint64](ctx, n.Peer(ctx), "counters", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Home.SetFaults(xdpfab.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	*patience = try.Patience
	ctx, leave := context.WithCancel(ctx)
	go func() {
		for n.Word(0).Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	if _, err := count(ctx, hits); !errors.Is(err, xdpfab.ErrOutcomeUnknown) || n.Word(0).Load() != 1 {
		t.Errorf("%v; the word is %d", err, n.Word(0).Load())
	}
}
