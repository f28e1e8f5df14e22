// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/test/e2e/recipes"
	fab "github.com/xdpfab/xdpfab/xdpfab"
)

// cook is a program that uses the recipes.
type cook struct {
	t                          *testing.T
	ctx                        context.Context
	peer                       *fab.Peer
	guard                      context.Context
	lock, quota, strict, saved fab.Remote[uint64]
}

func newCook(t *testing.T, side *testnet.Side, d *node) *cook {
	t.Helper()
	c := &cook{t: t}
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(t.Context(), 10*limit)
	t.Cleanup(cancel)
	var dom *fab.Domain
	err := side.Do(func() (err error) {
		// A daemon comes back within this time, on a slow machine, too.
		dom, err = fab.Open(c.ctx, side.IfName, fab.DomainAttr{GiveUp: 40 * time.Second})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dom.CloseAll() })
	if c.peer, err = dom.Dial(c.ctx, d.addr()); err != nil {
		t.Fatal(err)
	}
	c.lock, c.strict, c.saved = c.word("locks", 7), c.word("locks", 8), c.word("saved", 0)
	c.quota = c.word("locks", 9, fab.AutoRebind())
	return c
}

func (c *cook) word(region string, index uint64, options ...fab.HandleOption) fab.Remote[uint64] {
	c.t.Helper()
	w, err := fab.Word[uint64](c.ctx, c.peer, region, index, options...)
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

// grab tries once to put a token into a word that is 0. After a restart of the peer it
// fails, and binds the word to the new memory.
func grab(ctx context.Context, word fab.Remote[uint64], token uint64) (held bool, err error) {
	held, err = word.CompareAndSwap(ctx, 0, token)
	held, err = fab.Settle(ctx, held, err)
	if errors.Is(err, fab.ErrPeerRestarted) {
		return false, errors.Join(err, word.Rebind(ctx))
	}
	return held, err
}

// guardAndGrab does so with a guard, which has begun before the attempt.
func guardAndGrab(ctx context.Context, word fab.Remote[uint64], token uint64) (guarded context.Context, held bool,
	err error) {
	if guarded, err = word.Guard(ctx); err == nil {
		held, err = grab(guarded, word, token)
	} else if errors.Is(err, fab.ErrPeerRestarted) {
		err = errors.Join(err, word.Rebind(ctx))
	}
	return guarded, held, err
}

// take expects an attempt to end so, and without an error.
func (c *cook) take(token uint64, want bool) {
	c.t.Helper()
	if held, err := grab(c.ctx, c.lock, token); held != want || err != nil {
		c.t.Errorf("taking the lock: %t, %v; want %t", held, err, want)
	}
}

// admitted counts the requests of many that pass.
func (c *cook) admitted(word fab.Remote[uint64]) (n int) {
	for range 20 {
		if recipes.Admit(c.ctx, word, 3) {
			n++
		}
	}
	return n
}

// registeredAnew loses a lock with its region while the daemon serves on.
func (c *cook) registeredAnew(side *testnet.Side, d *node) {
	c.t.Helper()
	change := func(verb, region string) {
		c.t.Helper()
		xdpfab(c.t, side, []string{"region", verb, region, "--control", d.socket}).wants(0)
	}
	change("create", "brief=4KiB")
	holder, other := c.word("brief", 1), c.word("brief", 1, fab.AutoRebind())
	guarded, held, err := guardAndGrab(c.ctx, holder, 90)
	if !held || err != nil {
		c.t.Fatalf("a lock in a region of a moment: %t, %v", held, err)
	}
	change("remove", "brief")
	change("create", "brief=4KiB")
	if held, err := grab(c.ctx, other, 91); !held || err != nil {
		c.t.Errorf("the lock in the next region of that name: %t, %v", held, err)
	}
	<-guarded.Done() // nothing is sent meanwhile but by the guard
	if why := context.Cause(guarded); !errors.Is(why, fab.ErrPeerRestarted) || c.guard.Err() != nil {
		c.t.Errorf("the holder hears: %v; that of a lock in another region: %v", why, context.Cause(c.guard))
	}
	if _, held, err := guardAndGrab(c.ctx, holder, 92); held || !errors.Is(err, fab.ErrPeerRestarted) {
		c.t.Errorf("another attempt of the first holder: %t, %v", held, err)
	}
	if _, held, err := guardAndGrab(c.ctx, holder, 92); held || err != nil {
		c.t.Errorf("the lock that another one holds now: %t, %v", held, err)
	}
}

// Every recipe for restarts, and a guard, does what docs/restarts.md says: of a daemon
// that dies and comes back, whether it keeps resident regions or not, whether the program
// uses them in the same session or not, and of one that takes over and then dies.
func TestRecipes(t *testing.T) {
	testnet.Require(t)
	for _, c := range []struct {
		name                  string
		pinned, mixed, passed bool // with a folder; a resident region is used; taken over first
	}{
		{name: "plain"}, {name: "pinned", pinned: true}, {name: "resident session", pinned: true, mixed: true},
		{name: "taken over", passed: true}, {name: "resident session taken over", pinned: true, mixed: true, passed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			net := testnet.NewPair(t, testnet.Options{})
			flags := []string{"--region", "locks=4KiB", "--region", "saved=4KiB:backing=" + filepath.Join(t.TempDir(), "saved")}
			if c.pinned {
				if testnet.KernelBefore(t, 5, 18) {
					t.Skip("needs Linux 5.18")
				}
				flags = append(flags, "--pin", filepath.Join(testnet.BPFFS(t), "xdpfab", "node"), "--region", "hot=4KiB:resident")
			}
			d := launch(t, net.B, filepath.Join(t.TempDir(), socketName), flags...)
			d.ready()
			k := newCook(t, net.A, d)
			var hot fab.Remote[uint64]
			hots, hotGuard := uint64(0), t.Context()
			var err error
			use := func() {
				t.Helper()
				if !c.mixed {
					return
				}
				if n, err := hot.Add(k.ctx, 1); n != hots+1 || err != nil {
					t.Errorf("the resident region: %d, %v; want %d", n, err, hots+1)
				}
				hots++
			}
			if c.mixed {
				hot = k.word("hot", 0)
				if hotGuard, err = hot.Guard(k.ctx); err != nil {
					t.Fatal(err)
				}
			}
			use()
			var held bool
			if k.guard, held, err = guardAndGrab(k.ctx, k.lock, 77); !held || err != nil {
				t.Fatalf("taking the lock: %t, %v", held, err)
			}
			use()
			k.take(78, false)
			if held, err := grab(k.ctx, k.saved, 79); !held || err != nil {
				t.Fatalf("the word in a file: %t, %v", held, err)
			}
			if a, b := k.admitted(k.quota), k.admitted(k.strict); a != 3 || b != 3 {
				t.Errorf("%d and %d requests were admitted, want 3", a, b)
			}
			if c.name == "plain" {
				k.registeredAnew(net.B, d)
			}
			if c.passed {
				next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
				next.ready()
				d.wants(0)
				d = next
				use()
				k.take(80, false)
				if a, b := k.admitted(k.quota), k.admitted(k.strict); a+b != 0 || k.guard.Err() != nil {
					t.Errorf("after the takeover %d and %d requests were admitted, want none; %v", a, b, context.Cause(k.guard))
				}
			}
			d.crash()
			use() // nobody is there
			d = again(t, net.B, d.socket, flags...)
			<-k.guard.Done() // nothing is sent meanwhile but by the guards
			if why := context.Cause(k.guard); !errors.Is(why, fab.ErrPeerRestarted) {
				t.Errorf("the holder hears: %v", why)
			}
			use()
			if held, err := grab(k.ctx, k.lock, 81); held || !errors.Is(err, fab.ErrPeerRestarted) {
				t.Errorf("the first attempt after the death: %t, %v", held, err)
			}
			k.take(82, true)
			if a, b := k.admitted(k.quota), k.admitted(k.strict); a != 3 || b != 0 {
				t.Errorf("after the death %d and %d requests were admitted, want 3 and none", a, b)
			}
			if err := k.strict.Rebind(k.ctx); err != nil || k.admitted(k.strict) != 3 {
				t.Errorf("after Rebind: %v; want 3 requests admitted", err)
			}
			if n, err := k.quota.Load(k.ctx); err != nil || recipes.Grown(100, n) != n || recipes.Grown(n-1, n) != 1 {
				t.Errorf("a counter that began again: %d, %v", n, err)
			}
			if _, err := k.saved.Load(k.ctx); !errors.Is(err, fab.ErrPeerRestarted) {
				t.Errorf("the word in a file: %v", err)
			}
			if ran, err := recipes.Wrote(k.ctx, k.saved, 79); !ran || err != nil {
				t.Errorf("the token in a file: %t, %v", ran, err)
			}
			use()
			if hotGuard.Err() != nil {
				t.Errorf("the guard of the resident region: %v", context.Cause(hotGuard))
			}
			d.end()
		})
	}
}
