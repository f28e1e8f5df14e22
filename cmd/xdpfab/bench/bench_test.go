// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

const memory = 32 << 10 // bytes of the region

// pair is a domain that measures, and a peer at the other end of a pipe that serves.
type pair struct {
	dom    *xdpfab.Domain
	peer   Peer
	region interface{ Bytes() []byte }
}

func newPair(t *testing.T) *pair { return newPairOf(t, fi.ProgressAuto) }

func newPairOf(t *testing.T, progress fi.ProgressMode) *pair {
	t.Helper()
	a, b, err := xdpfab.Pipe(xdpfab.DomainAttr{GiveUp: testnet.Patience, Progress: progress})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.NewRegion("r", memory)
	if err != nil {
		t.Fatal(err)
	}
	box, err := b.NewMailbox(xdpfab.MailboxAttr{Number: Mailbox})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, b, box, progress == fi.ProgressManual, t.Logf) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_, _ = a.CloseAll(), b.CloseAll()
	})
	p, err := a.Dial(t.Context(), box.Name())
	if err != nil {
		t.Fatal(err)
	}
	region, err := p.Lookup(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	return &pair{a, Peer{box.Name(), region}, r}
}

func (p *pair) run(t *testing.T, c Config, peers ...Peer) (*Report, error) {
	t.Helper()
	c.Endpoints, c.Duration = max(c.Endpoints, 1), max(c.Duration, time.Hour)
	if c.Count == 0 {
		c.Count = 400
	}
	if err := c.Check(); err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return Run(t.Context(), p.dom, append(peers, p.peer), &c, func(time.Duration, uint64) {})
}

// Every operation is measured in both modes, and what it did is checked.
func TestOperations(t *testing.T) {
	p := newPair(t)
	for _, c := range []struct {
		Config
		verification string
	}{
		{Config{Op: "fetch_add", Datatype: atomic.Uint64}, "sum"},
		{Config{Op: "fetch_add", Datatype: atomic.Uint64, Stream: true, Words: 182, Spread: true, Count: 4000}, "sum"},
		{Config{Op: "add", Datatype: atomic.Int8, Stream: true, Endpoints: 3}, "sum"},
		{Config{Op: "sum", Datatype: atomic.Uint128, Stream: true, Size: 160, Spread: true}, "sum"},
		{Config{Op: "fetch_sum", Datatype: atomic.Double}, "none"},
		{Config{Op: "read", Datatype: atomic.Int32, Stream: true}, "sum"},
		{Config{Op: "cswap", Datatype: atomic.Uint64}, "sum"},
		{Config{Op: "cswap_le", Datatype: atomic.Float}, "none"},
		{Config{Op: "fetch_max", Datatype: atomic.Uint16, Stream: true, Words: 7}, "none"},
		{Config{Op: Put, Size: 100}, "bytes"},
		{Config{Op: Put, Size: 4096, Stream: true, Count: 64}, "bytes"},
		{Config{Op: PutSignal}, "bytes"},
		{Config{Op: PutSignal, Size: 4097, Stream: true, Both: true, Endpoints: 4}, "bytes"},
		{Config{Op: Get, Size: memory, Stream: true, Count: 20}, "bytes"},
		{Config{Op: Put, Size: 1024, Stream: true, Both: true, Endpoints: 4}, "bytes"},
		{Config{Op: Send}, "messages"},
		{Config{Op: Tagged, Size: 5000, Endpoints: 2, Count: 40}, "messages"},
		{Config{Op: Send, Size: 3000, Stream: true}, "messages"},
		{Config{Op: Tagged, Stream: true, Endpoints: 2, Warmup: time.Millisecond}, "messages"},
		{Config{Op: Send, Stream: true, Both: true, Endpoints: 2, Size: 3000}, "messages"},
		{Config{Op: Tagged, Stream: true, Both: true, Endpoints: 4}, "messages"},
	} {
		r, err := p.run(t, c.Config)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if r.Verification != c.verification || r.Verified != (c.verification != "none") {
			t.Errorf("%+v: verification %q, %v, want %q", c, r.Verification, r.Verified, c.verification)
		}
		want := uint64(c.Count)
		if c.Count == 0 {
			want = 400
		}
		exact := c.Datatype != 0 || c.verification == "sum" || c.verification == "none"
		if r.Ops < want || exact && c.Words < 2 && r.Ops != want || r.OpsPerSecond <= 0 {
			t.Errorf("%+v: %d operations, %v/s, want %d", c, r.Ops, r.OpsPerSecond, want)
		}
		if stream := c.verification == "messages" && c.Stream; stream != (r.Latency.Count == 0) || r.Latency.P50 > r.Latency.Max {
			t.Errorf("%+v: latency %+v", c, r.Latency)
		}
		var text strings.Builder
		if r.Text(&text); !strings.Contains(text.String(), map[bool]string{true: "\nverified: ", false: "\nnot verified: "}[r.Verified]) {
			t.Errorf("%+v: %s", c, text.String())
		}
	}
}

// With manual progress one worker polls, and several wait, at either side.
func TestManualProgress(t *testing.T) {
	p := newPairOf(t, fi.ProgressManual)
	for _, c := range []Config{
		{Op: "fetch_add", Datatype: atomic.Uint64}, {Op: Put, Size: 100, Stream: true}, {Op: Tagged}, {Op: Send, Stream: true},
		{Op: "add", Datatype: atomic.Uint64, Stream: true, Endpoints: 2}, {Op: Tagged, Endpoints: 2},
		{Op: Send, Stream: true, Both: true, Endpoints: 2},
	} {
		c.Manual = true
		if r, err := p.run(t, c); err != nil || !r.Verified || r.Ops < 400 {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}

// slow is a loader whose first turn outlasts the run.
type slow struct {
	latencies histogram.Histogram
	turns     uint64
}

func (s *slow) turn(context.Context, uint64) error {
	if s.turns++; s.turns == 1 {
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}
func (s *slow) drain(context.Context) error  { return nil }
func (s *slow) posted() uint64               { return s.turns }
func (s *slow) done() uint64                 { return s.turns }
func (s *slow) latency() histogram.Histogram { return s.latencies }

// A turn that takes longer than the warm-up and the run, since it opens a session, does
// not leave the run without a measurement.
func TestFirstTurnOutlastsRun(t *testing.T) {
	p := newPair(t)
	for _, warmup := range []time.Duration{0, 1} {
		x := &run{c: &Config{Op: Put, Size: 8, Endpoints: 1, Duration: 1, Warmup: warmup}, dom: p.dom}
		var of target
		for i := range 2 {
			x.worker(&of, i, &slow{latencies: histogram.New()})
		}
		x.workers = of.workers
		r := &Report{Config: x.c}
		if err := x.measure(t.Context(), r, func(time.Duration, uint64) {}); err != nil {
			t.Fatal(err)
		}
		for i, w := range x.workers {
			if w.measured == 0 {
				t.Errorf("warm-up %v: worker %d measured nothing", warmup, i)
			}
		}
		r.add(&of, Verification{What: "bytes"})
		if !r.Verified || r.Ops == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// A run that was ended before it measured anything says so, although its warm-up is
// right.
func TestNothingMeasured(t *testing.T) {
	r := &Report{Config: &Config{Op: "add", Datatype: atomic.Uint64}, Seconds: 1}
	r.add(&target{}, Verification{What: "sum", Acknowledged: 7, Growth: 7})
	var text strings.Builder
	if r.Text(&text); r.Verified || r.Verification != "none" || !strings.Contains(text.String(), "not verified: no operation was measured") {
		t.Errorf("%+v: %s", r, text.String())
	}
}

// A region that does not have the bytes that were written is noticed, as is a sum that
// another program has changed.
func TestVerificationFails(t *testing.T) {
	p := newPair(t)
	for _, c := range []Config{
		{Op: Put, Size: 512, Stream: true}, {Op: "add", Datatype: atomic.Uint64}, {Op: "read", Datatype: atomic.Uint64},
		{Op: PutSignal},
	} {
		c.Endpoints, c.Duration, c.Count = 1, time.Hour, 100
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		x := &run{c: &c, dom: p.dom}
		target := &target{Peer: p.peer}
		prepare := x.transfers
		if c.Atomic() {
			prepare = x.atomics
		}
		if err := prepare(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		x.workers = target.workers
		if err := x.measure(t.Context(), &Report{Config: &c}, func(time.Duration, uint64) {}); err != nil {
			t.Fatal(err)
		}
		p.region.Bytes()[map[bool]int{true: 8}[c.Op == PutSignal]] ^= 0x40 // of puts of 8 bytes the signalled word
		if _, err := target.verify(t.Context()); err == nil || !strings.Contains(err.Error(), "verification failed") {
			t.Errorf("%s: %v", c.Op, err)
		}
	}
}

// Several peers have one report, with the part of each.
func TestSeveralPeers(t *testing.T) {
	p := newPair(t)
	other := p.peer
	other.Region.Base += 8
	other.Region.Size -= 8
	r, err := p.run(t, Config{Op: "add", Datatype: atomic.Uint64, Stream: true, Endpoints: 2}, other)
	if err != nil || len(r.Peers) != 2 || r.Ops != 800 || r.Peers[0].Ops != 400 || r.Growth < 800 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The percentiles asked for are in the report, in its text and in its CSV; a size is a
// row of a table.
func TestForms(t *testing.T) {
	p := newPair(t)
	r, err := p.run(t, Config{Op: Put, Percentiles: []float64{25, 99.99}})
	if err != nil || len(r.Percentiles) != 2 || r.Percentiles[0].NS > r.Percentiles[1].NS || r.Percentiles[0].NS < r.Latency.Min {
		t.Fatalf("%+v, %v", r, err)
	}
	var text, table bytes.Buffer
	if r.Text(&text); !strings.Contains(text.String(), "min\tp25\tp99.99\tmax") {
		t.Error(text.String())
	}
	if err := errors.Join(r.Row(&table, true), r.Row(&table, false)); err != nil {
		t.Error(err)
	}
	lines := strings.Split(table.String(), "\n")
	if len(lines) != 5 || strings.Join(strings.Fields(lines[1]), " ") != "SIZE OPS OPS/S BYTES/S min p25 p99.99 max VERIFIED" ||
		!strings.HasPrefix(lines[2], "8 bytes    400        ") || lines[3] != lines[2] || strings.Index(lines[1], "OPS") != strings.Index(lines[2], "400") {
		t.Error(table.String())
	}
	names, values := r.CSV()
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.WriteAll([][]string{names, values}); err != nil || len(names) != len(values) || !slices.Contains(names, "p99.99_ns") {
		t.Errorf("%v: %v %v", err, names, values)
	}
	r.counted, r.OpsPerPacket = false, 0 // as through a daemon
	text.Reset()
	if r.Text(&text); strings.Contains(text.String(), "packet") || strings.Contains(text.String(), "resent") {
		t.Error(text.String())
	}
	r.Seconds, r.OpsPerSecond, r.BytesPerSecond = 2e-7, 123456789.7, 9.87e9
	for name, want := range map[string]string{"seconds": "0.000000", "ops_per_second": "123456790", "bytes_per_second": "9870000000", "size_bytes": "8"} {
		if names, values := r.CSV(); !slices.Contains(names, name) || values[slices.Index(names, name)] != want {
			t.Errorf("%s of %v %v, want %s", name, names, values, want)
		}
	}
	if _, values := r.CSV(); values[slices.Index(names, "ops_per_packet")] != "" {
		t.Error(values)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		Config
		say string
	}{
		{Config{Op: "mul"}, "want one of fetch_add"},
		{Config{Op: "bor", Datatype: atomic.Double}, "base bor is not defined for double: want int8, uint8, int16"},
		{Config{Op: "add", Datatype: atomic.Uint64, Size: 12}, "multiple of 8"},
		{Config{Op: Put, Size: 4}, "want 8 bytes or more"},
		{Config{Op: Put, Size: 2 << 30}, "want 1 GiB or less"},
		{Config{Op: Put, Words: 2}, "want an atomic operation"},
		{Config{Op: "add", Datatype: atomic.Uint64, Words: 2, Size: 16}, "of one element for each word"},
		{Config{Op: "add", Datatype: atomic.Uint64, Words: 5000}, "want 1 to 4096"},
		{Config{Op: "add", Datatype: atomic.Uint64, Both: true}, "want put or get"},
		{Config{Op: Send, Both: true, Endpoints: 2}, "want --mode throughput"},
		{Config{Op: Tagged, Both: true, Stream: true}, "want an even number"},
		{Config{Op: Put, Both: true, Endpoints: 3}, "want an even number"},
		{Config{Op: PutSignal, Words: 2}, "want an atomic operation"},
		{Config{Op: "add", Datatype: atomic.Uint64, Window: 2}, "--mode throughput"},
		{Config{Op: "add", Datatype: atomic.Uint64, Stream: true, Window: MaxWindow + 1}, "want 1 to 65536"},
		{Config{Op: "add", Datatype: atomic.Uint64, Percentiles: []float64{101}}, "want 0 to 100"},
	} {
		c.Endpoints, c.Duration = max(c.Endpoints, 1), 1
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v, want %q", c.Config, err, c.say)
		}
	}
	for list, want := range map[string]string{"8,4KiB": "[8 4096]", "all": "[8 16 32 64]", "16": "[16]"} {
		if got, err := Sizes(list, 4, 64); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v, want %s", list, got, err, want)
		}
	}
	for _, list := range []string{"", "4KB", "0", "8,,16"} {
		if got, err := Sizes(list, 8, 64); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if _, err := ParsePercentiles("50,x"); err == nil {
		t.Error("percentile x")
	}
}

// Serve refuses what it cannot do, and goes on; an endpoint whose peer is gone is ended.
func TestServeRefuses(t *testing.T) {
	p := newPair(t)
	c, err := newCaller(t.Context(), p.dom, p.peer.Addr)
	if err != nil {
		t.Fatal(err)
	}
	line, err := newLine(p.dom)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []struct {
		ask
		say string
	}{
		{ask{Endpoint: line, Test: "dance", Size: 8, Flight: 1}, "want trip"},
		{ask{Endpoint: line, Test: "trip", Size: 4, Flight: 1}, "want at most"},
		{ask{Endpoint: line, Test: "stream", Size: 1 << 20, Flight: 1 << 10}, "want at most 256 MiB"},
		{ask{Endpoint: line, End: true}, "is not served"},
	} {
		if _, err := c.call(t.Context(), a.ask); err == nil || !strings.Contains(err.Error(), a.say) {
			t.Errorf("%+v: %v, want %q", a.ask, err, a.say)
		}
	}
	if r, err := c.call(t.Context(), ask{Endpoint: line, Test: "trip", Size: 8, Flight: 1}); err != nil || r.Endpoint == 0 {
		t.Errorf("after refusals: %+v, %v", r, err)
	}
}

// newLine makes an endpoint that never sends, and returns its number.
func newLine(dom *xdpfab.Domain) (uint16, error) {
	ep, err := dom.NewEndpoint(xdpfab.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		return 0, err
	}
	return ep.Number(), ep.Enable()
}
