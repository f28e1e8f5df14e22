// SPDX-License-Identifier: Apache-2.0

//go:build linux

package load

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// node is an initiator's domain, and a target at the other end of a pipe with a
// region of 64 words.
type node struct {
	dom    *xdpfab.Domain
	peer   string
	region xdpfab.RemoteRegion
}

func newNode(t testing.TB) *node {
	t.Helper()
	a, b, err := xdpfab.Pipe(xdpfab.DomainAttr{GiveUp: testnet.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.CloseAll(), b.CloseAll() })
	if _, err := b.NewRegion("r", 64*WordSize); err != nil {
		t.Fatal(err)
	}
	for key := range uint64(3) {
		m, err := mr.Alloc(WordSize, mr.AllocOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		if _, err := b.Register(m, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
			t.Fatal(err)
		}
	}
	ep, err := b.NewEndpoint(xdpfab.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	n := &node{dom: a, peer: b.Name(0)}
	p, err := a.Dial(t.Context(), n.peer)
	if err != nil {
		t.Fatal(err)
	}
	if n.region, err = p.Lookup(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) generator(t testing.TB, c Config) *Generator {
	t.Helper()
	c.Region = n.region
	g, err := New(t.Context(), n.dom, n.peer, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run posts a number of operations through the window.
func (g *Generator) run(t testing.TB, posts uint64) {
	t.Helper()
	ctx := t.Context()
	for g.Posts < posts || g.InFlight() > 0 {
		if err := g.Fill(int(posts - g.Posts)); err != nil {
			t.Fatal(err)
		}
		if err := g.Collect(ctx, true); err != nil {
			t.Fatal(err)
		}
	}
}

// Every operation is posted once, counted once and timed once; the words grow by
// those that add.
func TestEveryOperationCounts(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		name   string
		c      Config
		posts  uint64
		growth uint64
	}{
		{"one word", Config{Kind: FetchAdd, Window: 1, Endpoints: 1, Words: 1, Elements: 1, Scatter: 1}, 100, 100},
		{"without results", Config{Kind: Add, Window: 16, Endpoints: 1, Words: 64, Elements: 1, Scatter: 1, First: 60}, 1000, 1000},
		{"arrays", Config{Kind: FetchAdd, Window: 4, Endpoints: 2, Words: 4, Elements: 16, Scatter: 1}, 100, 1600},
		{"scattered", Config{Kind: FetchAdd, Window: 4, Endpoints: 1, Words: 64, Elements: 1, Scatter: 10}, 100, 1000},
		{"endpoints in turn", Config{Kind: FetchAdd, Window: 2, Endpoints: 5, Words: 64, Elements: 1, Scatter: 1}, 100, 100},
		{"other regions", Config{Kind: FetchAdd, Window: 4, Endpoints: 1, Words: 1, Elements: 1, Scatter: 1, Keys: 2}, 100, 0},
		{"read", Config{Kind: Read, Window: 4, Endpoints: 1, Words: 64, Elements: 1, Scatter: 1}, 100, 0},
		{"compare", Config{Kind: CompareAndSwap, Window: 4, Endpoints: 1, Words: 64, Elements: 1, Scatter: 1}, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := n.generator(t, c.c)
			before, err := g.Sum(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g.run(t, c.posts)
			after, err := g.Sum(t.Context())
			if err != nil || after-before != c.growth {
				t.Errorf("the words grew by %d, %v; want %d", after-before, err, c.growth)
			}
			if want := c.posts * uint64(c.c.Scatter); g.Done != want || g.Latency.Count() != int64(want) || g.Posts != c.posts {
				t.Errorf("%d posts, %d operations, %d times; want %d and %d", g.Posts, g.Done, g.Latency.Count(), c.posts, want)
			}
		})
	}
}

// A failed operation has completed: its place in the window is free again.
func TestFailureIsTold(t *testing.T) {
	n := newNode(t)
	n.region.Key++ // of no region
	n.region.Size = 0
	g := n.generator(t, Config{Kind: FetchAdd, Window: 4, Endpoints: 1, Words: 1, Elements: 1, Scatter: 1})
	if err := g.Fill(g.Free()); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for g.InFlight() > 0 {
		if err := g.Collect(t.Context(), true); errors.Is(err, xdpfab.ErrNotExecuted) {
			failed++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if failed != 4 || g.Done != 0 {
		t.Errorf("%d of 4 failed, %d done", failed, g.Done)
	}
}

func TestPostingAllocatesNothing(t *testing.T) {
	n := newNode(t)
	g := n.generator(t, Config{Kind: FetchAdd, Window: 8, Endpoints: 1, Words: 64, Elements: 1, Scatter: 4})
	g.run(t, 1000)
	posts := func() {
		if err := g.Fill(8); err != nil {
			t.Fatal(err)
		}
		for g.InFlight() > 0 {
			if err := g.Collect(t.Context(), false); err != nil { // waiting takes a timer
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	if a := testing.AllocsPerRun(100, posts); a != 0 {
		t.Errorf("%v allocations in 8 posts", a)
	}
}

func TestConfigIsChecked(t *testing.T) {
	n := newNode(t)
	ok := Config{Kind: FetchAdd, Region: n.region, Window: 1, Endpoints: 1, Words: 1, Elements: 1, Scatter: 1}
	for want, change := range map[string]func(*Config){
		"window 0":                         func(c *Config) { c.Window = 0 },
		"0 endpoints":                      func(c *Config) { c.Endpoints = 0 },
		"65 words of 1 elements: region r": func(c *Config) { c.Words = 65 },
		"want one element each":            func(c *Config) { c.Scatter, c.Elements = 2, 2 },
		"first word 1: want one of 1":      func(c *Config) { c.First = 1 },
		"in one region":                    func(c *Config) { c.Scatter, c.Keys = 2, 5 },
	} {
		c := ok
		change(&c)
		if _, err := New(t.Context(), n.dom, n.peer, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
