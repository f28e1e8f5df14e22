// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestPing(t *testing.T) {
	n := newNode(t)
	for _, args := range []string{"ping PEER -c 50", "ping PEER -c 50 --region r --progress manual", "ping PEER -c 3 --interval 1ms"} {
		got := mustRun[pingReport](n, args)
		p := got.RoundTrip
		if got.Sent != got.Answered || got.Lost != 0 || int64(got.Sent) != p.Count || p.Min <= 0 || p.Min > p.P50 || p.P50 > p.P99 || p.P99 > p.Max {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if r := n.run("", n.line("ping PEER -c 5")...); r.code != 0 || !strings.Contains(r.out, "5 round trips") || !strings.Contains(r.out, "p99.9") {
		t.Errorf("%+v", r)
	}
	if r := n.run("", n.line("ping PEER -c 3 --interval 10ms")...); r.code != 0 || strings.Count(r.out, "\nround trip ") != 3 || strings.Count(r.out, "ping "+peerAddr) != 1 {
		t.Errorf("%+v", r)
	}
	if r := n.run("", n.line("ping PEER -c 3 --interval 10ms -q")...); r.code != 0 || strings.Contains(r.out, "round trip ") || strings.Count(r.out, "ping "+peerAddr) != 1 {
		t.Errorf("%+v", r)
	}
	// An interrupted run prints the figures that it has.
	if r := n.interrupt("ping PEER -c 0", func() {}); r.code != 0 || !strings.Contains(r.out, " 0 lost") {
		t.Errorf("interrupted: %+v", r)
	}
}

// A peer that falls silent costs three time limits, not as many as there are round trips
// to go.
func TestPingGivesUp(t *testing.T) {
	tried := 0
	var r pingReport
	var out strings.Builder
	err := r.run(context.Background(), &pingFlags{count: 100}, &pingLines{out: &out, each: true}, func(context.Context) error {
		if tried++; tried > 5 {
			return fmt.Errorf("%w: likely causes: (1) it has ended", xdpfab.ErrPeerSilent)
		}
		return nil
	})
	if !errors.Is(err, xdpfab.ErrPeerSilent) || r.Answered != 5 || r.Lost != goneAfter || tried != r.Sent {
		t.Errorf("%+v, %v after %d", r, err, tried)
	}
	if text := out.String(); strings.Count(text, "µs\n") != 5 || strings.Count(text, "lost after") != goneAfter ||
		!strings.Contains(text, "round trip 6: lost") || strings.Contains(text, "likely causes") || !strings.Contains(err.Error(), "likely causes") {
		t.Error(text)
	}
}

// Without a pause each second has a line.
func TestPingLines(t *testing.T) {
	var out strings.Builder
	l := &pingLines{out: &out}
	for i := range 25 {
		l.add(i, time.Microsecond, time.Duration(i)*100*time.Millisecond, nil)
	}
	want := "1 s: 11 round trips, p50 1.00 µs, p99 1.00 µs, max 1.00 µs\n2 s: 10 round trips, p50 1.00 µs, p99 1.00 µs, max 1.00 µs\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
