// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package tutorial tests docs/tutorial.md: its steps, and that it prints what is tested.
package tutorial

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/internal/tutorial/limiter"
	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// Every block of the tutorial is part of a file that is compiled and tested.
func TestPrinted(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for _, pattern := range []string{"*/*.go", "../../ratelimiter/*.go", "../../counter/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			code = append(code, string(text))
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 10 {
		t.Errorf("only %d blocks looked at", len(blocks))
	}
	for _, b := range blocks {
		found := false
		for _, text := range code {
			found = found || strings.Contains(text, b[1])
		}
		if !found {
			t.Errorf("the tutorial prints what no file has:\n%s", b[1])
		}
	}
}

// Programs at the same time admit the quota together, in one period and in the next.
func TestStep2(t *testing.T) {
	n, ctx := try.New(t, "limits", 4096), try.Context(t)
	word, err := xdpfab.Word[uint64](ctx, n.Peer(ctx), "limits", 0)
	if err != nil {
		t.Fatal(err)
	}
	n.Faults(try.Bad)
	l := limiter.Limiter{Word: word, Quota: 50, Period: 1000 * time.Hour}
	for period := range 2 {
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 30 {
					ok, err := l.Allow(ctx)
					if err != nil {
						t.Error(err)
					}
					if ok {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		if a := admitted.Load(); a != 50 {
			t.Errorf("admitted %d requests in period %d, want 50", a, period)
		}
		n.Word(0).Store(n.Word(0).Load() - 1<<24) // as if that was in the period before
	}
}

// Customers have a quota each.
func TestStep3(t *testing.T) {
	n, ctx := try.New(t, "limits", 4096), try.Context(t)
	words, err := xdpfab.Vector[uint64](ctx, n.Peer(ctx), "limits")
	if err != nil {
		t.Fatal(err)
	}
	l := limiter.Customers{Words: words, Quota: 3, Period: 1000 * time.Hour}
	for _, customer := range []string{"a", "b"} {
		for i := range 5 {
			if ok, err := l.Allow(ctx, customer); ok != (i < 3) || err != nil {
				t.Errorf("request %d of %s: %t, %v", i, customer, ok, err)
			}
		}
	}
}
