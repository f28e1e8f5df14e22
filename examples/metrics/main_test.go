// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

func newSink(t *testing.T, n *try.Nodes) *sink {
	t.Helper()
	ctx := try.Context(t)
	v, err := xdpfab.Vector[uint64](ctx, n.Peer(ctx), "metrics", xdpfab.AutoRebind())
	if err != nil {
		t.Fatal(err)
	}
	return &sink{sums: v}
}

// The sums of many programs are exact in a bad network.
func TestMetrics(t *testing.T) {
	n, ctx := try.New(t, "metrics", 8*words), try.Context(t)
	n.Faults(try.Bad)
	var all sync.WaitGroup
	for range 4 {
		s := newSink(t, n)
		all.Go(func() {
			for i := range 500 {
				s.observe(time.Duration(i))
				if i%10 == 9 {
					if err := s.flush(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	var text strings.Builder
	if err := newSink(t, n).print(ctx, &text); err != nil {
		t.Error(err)
	}
	// Of 0 to 499, 256 are less than 2^8.
	for _, line := range []string{
		"request_seconds_bucket{le=\"2.56e-07\"} 1024\n", "request_seconds_bucket{le=\"+Inf\"} 2000\n",
		"requests_total 2000\n", "requests_unsure_total 0\n",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("missing %q in:\n%s", line, text.String())
		}
	}
	*requests = 100
	if err := run(ctx, n.Client, n.Addr); err != nil || n.Word(total).Load() != 2100 {
		t.Errorf("%v, %d requests", err, n.Word(total).Load())
	}
}

// What is in doubt is counted as such, and not added again.
func TestUnsure(t *testing.T) {
	n := try.New(t, "metrics", 8*words)
	s := newSink(t, n)
	s.observe(1)
	if err := n.Home.SetFaults(xdpfab.Faults{Loss: 1}); err != nil { // no answer comes
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(try.Context(t))
	go func() {
		for n.Word(total).Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	if err := s.flush(ctx); err != nil {
		t.Error(err)
	}
	if err := n.Home.SetFaults(xdpfab.Faults{}); err != nil {
		t.Fatal(err)
	}
	s.observe(1)
	if err := s.flush(try.Context(t)); err != nil {
		t.Error(err)
	}
	if a, b := n.Word(total).Load(), n.Word(unsure).Load(); a != 2 || b != 1 {
		t.Errorf("%d requests, %d in doubt; want 2 and 1", a, b)
	}
}

// What was not added is added by the next flush. When the home restarts the sums start
// over, and what was sent to its former life is in doubt.
func TestKept(t *testing.T) {
	n := try.New(t, "metrics", 8*words)
	s := newSink(t, n)
	s.observe(1)
	gone, leave := context.WithCancel(try.Context(t))
	leave()
	if err := s.flush(gone); err == nil {
		t.Error("a flush without time succeeded")
	}
	s.observe(1)
	if err := s.flush(try.Context(t)); err != nil || n.Word(total).Load() != 2 || n.Word(unsure).Load() != 0 {
		t.Errorf("%v; %d requests, %d in doubt; want 2 and none", err, n.Word(total).Load(), n.Word(unsure).Load())
	}
	n.Restart()
	for range 2 { // the second one tells of the first
		s.observe(1)
		if err := s.flush(try.Context(t)); err != nil {
			t.Error(err)
		}
	}
	if a, b := n.Word(total).Load(), n.Word(unsure).Load(); a == 0 || a+b != 2 {
		t.Errorf("%d requests, %d in doubt; want 2 together", a, b)
	}
}
