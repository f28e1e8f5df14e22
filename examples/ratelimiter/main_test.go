// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

const long = 1000 * time.Hour // no period ends while a test runs

// newTestLimiter waits for answers as long as it takes.
func newTestLimiter(t *testing.T, n *try.Nodes) *limiter {
	t.Helper()
	ctx := try.Context(t)
	l, err := newLimiter(ctx, n.Peer(ctx), 100, long)
	if err != nil {
		t.Fatal(err)
	}
	l.patience = try.Patience
	return l
}

// Many programs admit the quota together, in a bad network.
func TestRateLimiter(t *testing.T) {
	n, ctx := try.New(t, "limits", 1<<16), try.Context(t)
	n.Faults(try.Bad)
	limiters := []*limiter{newTestLimiter(t, n), newTestLimiter(t, n), newTestLimiter(t, n)}
	var admitted atomic.Int64
	var all sync.WaitGroup
	for _, l := range limiters {
		all.Go(func() {
			for range 60 {
				if l.allow(ctx, "a") {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if a := admitted.Load(); a != 100 {
		t.Errorf("admitted %d requests, want 100", a)
	}
	if !limiters[0].allow(ctx, "b") {
		t.Error("a request of another customer was refused")
	}
}

// Without the home a program admits its share, and no more; in new memory the quota
// again.
func TestHomeAway(t *testing.T) {
	n, ctx := try.New(t, "limits", 1<<16), try.Context(t)
	l := newTestLimiter(t, n)
	admitted := func() (some int) {
		for range 200 {
			if l.allow(ctx, "a") {
				some++
			}
		}
		return some
	}
	if a := admitted(); a != 100 {
		t.Errorf("admitted %d requests, want 100", a)
	}
	n.Restart()
	if a := admitted(); a != 100 {
		t.Errorf("with new memory: admitted %d requests, want 100", a)
	}
	n.Faults(xdpfab.Faults{Loss: 1})
	l.patience, l.pause = time.Millisecond, long
	if a := admitted(); a != 10 {
		t.Errorf("without the home: admitted %d requests, want 10", a)
	}
	n.Faults(xdpfab.Faults{})
	l.patience = try.Patience
	l.away.Store(0)
	if a := admitted(); a != 0 {
		t.Errorf("with the home again: admitted %d requests, want none", a)
	}
}

// Requests arrive, answers do not: the limiter decides alone.
func TestWithoutAnswers(t *testing.T) {
	client, home, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer home.CloseAll()
	defer client.CloseAll()
	limits, err := home.Serve("limits", 4096)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := client.Dial(t.Context(), limits.Name())
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLimiter(t.Context(), peer, 100, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.SetFaults(xdpfab.Faults{Loss: 1}); err != nil { // of all that the home sends
		t.Fatal(err)
	}
	admitted := 0
	for range 200 {
		if l.allow(t.Context(), "a") {
			admitted++
		}
	}
	if admitted < 10 || admitted > 20 { // its share of 10, and of a period that ended meanwhile
		t.Errorf("admitted %d requests, want 10", admitted)
	}
}

func TestRun(t *testing.T) {
	*requests, *period = 50, long
	n := try.New(t, "limits", 1<<16)
	if err := run(try.Context(t), n.Client, n.Addr); err != nil {
		t.Error(err)
	}
}

// The last command of docs/tutorial.md reads the count of the customer that it names.
func TestTutorialReadsACount(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorial.md")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Skip("a copy of this example has no tutorial beside it")
	case err != nil:
		t.Fatal(err)
	}
	command := regexp.MustCompile(`--region limits --offset (\d+) .* the count of one customer`).FindSubmatch(page)
	if command == nil || !bytes.Contains(page, []byte(`whose name is "customer 0"`)) {
		t.Fatal("the page has no such command")
	}
	offset, _ := strconv.Atoi(string(command[1]))
	n, ctx := try.New(t, "limits", 1<<16), try.Context(t)
	l := newTestLimiter(t, n)
	for range 3 {
		if !l.allow(ctx, "customer 0") {
			t.Error("a request was refused")
		}
	}
	if admitted := n.Word(offset/8).Load() & (1<<24 - 1); admitted != 3 {
		t.Errorf("a count of %d at %d, want 3", admitted, offset)
	}
}
