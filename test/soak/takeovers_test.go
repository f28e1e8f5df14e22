// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func ended(l *leashed) bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// takeOver has another daemon take the place of this one, and reports whether it has: it
// may be refused. Afterwards exactly one of both serves.
func (d *daemon) takeOver(t *testing.T) bool {
	t.Helper()
	was, next := d.run, d.launch(t, "--takeover")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		gone, refused := ended(was), ended(next)
		if gone && refused {
			t.Fatal("a takeover has ended both daemons")
		}
		if !gone && !refused {
			continue
		}
		s, err := d.status(t)
		if err != nil || gone == (s.PID == d.pid) {
			continue
		}
		if gone {
			d.run, d.pid = next, s.PID
		}
		return gone
	}
	t.Fatal("a takeover does not end")
	return false
}

// counting adds 1 to a word again and again. No add may fail, and none is lost.
type counting struct {
	t    *testing.T
	what string
	n    atomic.Uint64
	end  context.CancelFunc
	done chan struct{}
}

func count(t *testing.T, what string, w xdpfab.Remote[uint64]) *counting {
	stop, end := context.WithCancel(context.Background())
	c := &counting{t: t, what: what, end: end, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for stop.Err() == nil {
			sum, err := w.Add(context.Background(), 1)
			if err != nil || sum != c.n.Load()+1 {
				t.Errorf("%s: sum %d, want %d: %v", what, sum, c.n.Load()+1, err)
				return
			}
			c.n.Add(1)
		}
	}()
	t.Cleanup(c.halt)
	return c
}

func (c *counting) halt() {
	c.end()
	<-c.done
}

// goesOn waits until some more adds have succeeded.
func (c *counting) goesOn() {
	c.t.Helper()
	was := c.n.Load()
	for end := time.Now().Add(patience); c.n.Load() < was+3; time.Sleep(time.Millisecond) {
		if c.t.Failed() { // an add has, and said why
			c.t.FailNow()
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s stands still at %d", c.what, was)
		}
	}
}

// honest is a program and a peer that add to the memory of each other, and to the
// daemon's.
type honest struct {
	all  []*counting
	sums []func() uint64
}

func newHonest(t *testing.T, w *world, host *daemon) *honest {
	t.Helper()
	var g *xdpfab.Domain
	must(t, w.wire.A.Do(func() (err error) {
		a := xdpfab.DomainAttr{Attach: fi.AttachAlways, Control: host.path, GiveUp: lively}
		g, err = xdpfab.Open(limited(t), w.wire.A.IfName, a)
		return err
	}))
	t.Cleanup(func() { must(t, g.CloseAll()) })
	key := uint64(regionKey)
	mem, err := mr.Memfd("own", 4096)
	must(t, err)
	t.Cleanup(func() { _ = mem.Close() })
	own, err := g.Register(mem, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
	must(t, err)
	ep, err := g.NewEndpoint(xdpfab.EndpointAttr{Number: 7})
	must(t, errors.Join(err, ep.Enable()))
	h := &honest{}
	add := func(what string, from *xdpfab.Domain, to string, b []byte) {
		p, err := from.Dial(limited(t), to)
		must(t, err)
		h.all = append(h.all, count(t, what, xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: key}, 0)))
		h.sums = append(h.sums, func() uint64 { return (&world{mem: b}).word(0) })
	}
	add("the program", g, w.addr, w.mem)
	add("the program's peer", w.server, g.Name(7), own.Bytes())
	add("the daemon's peer", w.server, g.Name(0), host.file)
	return h
}

func (h *honest) goesOn() {
	for _, c := range h.all {
		c.goesOn()
	}
}

// check ends the work, and compares what was done with the memory.
func (h *honest) check(t *testing.T) {
	t.Helper()
	for i, c := range h.all {
		c.halt()
		if sum := h.sums[i](); sum != c.n.Load() {
			t.Errorf("%s has added %d, and the word is %d", c.what, c.n.Load(), sum)
		}
		survived.add("adds beside rogues", int(c.n.Load()))
	}
}

// amongRogues has daemons take over from one another n times, while rogues do what they
// can against it. An honest program and an honest peer notice nothing. before is called
// before each takeover.
func amongRogues(t *testing.T, w *world, rnd *rand.Rand, n int, before func()) {
	t.Helper()
	must(t, w.client.CloseAll()) // the daemon needs the interface
	box := filepath.Join(t.TempDir(), "box")
	host := newDaemon(t, w.wire.A, setting{daemonArgs: []string{"--give-up", lively.String(), "--socket", box + ":mode=0600",
		"--guest", "allow:serve=rogue*,kept=64KiB,endpoints=64,regions=64,socket=" + box, "--guest", "allow"}})
	host.start(t)
	h := newHonest(t, w, host)
	defer func() { // before the clean-up, which begins with the last daemon
		if !t.Failed() || ended(host.run) {
			return
		}
		if _, err := host.status(t); err != nil { // it stands still, and says where
			t.Log(err)
			_ = unix.Kill(host.pid, unix.SIGQUIT)
			select {
			case <-host.run.done:
			case <-time.After(patience):
			}
		}
	}()
	var out lockedBuffer
	bad := leash(t, disguised("rogue", envAddress+"="+w.addr, fmt.Sprint(envSeed, "=", rnd.Uint64()), fi.ControlEnv+"="+box), nil, &out)
	guests := func(is func(int) bool) func() bool {
		return func() bool {
			s, err := host.status(t)
			return err == nil && is(len(s.Guests))
		}
	}
	for done, end := 0, time.Now().Add(patience); done < n; {
		if time.Now().After(end) {
			t.Fatalf("no takeover in %v, after %d of %d\n%s", patience, done, n, host.out.String())
		}
		testnet.Eventually(t, "a rogue", guests(func(n int) bool { return n > 1 }))
		time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
		before()
		if host.takeOver(t) {
			done, end = done+1, time.Now().Add(patience)
			survived.add("takeovers among rogues", 1)
		} else {
			survived.add("takeovers refused", 1)
		}
		h.goesOn()
	}
	if ended(bad) {
		t.Errorf("the rogues have ended by themselves: %s", out.String())
	}
	bad.letGo()
	testnet.Eventually(t, "only the honest program is left", guests(func(n int) bool { return n == 1 }))
	h.goesOn()
	h.check(t)
	if strings.Contains(host.out.String(), "another process serves this file") {
		t.Error("a daemon takes the former one for another process that serves its file")
	}
}

// Programs that break the rules stop no takeover.
func TestTakeoversAmongRogues(t *testing.T) {
	w := newWorld(t, setting{seed: 10, server: xdpfab.DomainAttr{GiveUp: lively}})
	amongRogues(t, w, rand.New(rand.NewPCG(10, 10)), 3, func() {})
}

// takeovers is the same for longer, in bad weather, with partitions that last longer than
// a daemon would have all programs wait.
func takeovers(t *testing.T, rnd *rand.Rand) {
	w := newWorld(t, setting{seed: rnd.Uint64(), server: xdpfab.DomainAttr{GiveUp: lively}})
	defer burden(t, rnd)()
	var usual faultwire.Faults
	if rnd.IntN(2) == 0 {
		usual = mixed(rnd)
	}
	w.wire.SetBoth(usual)
	amongRogues(t, w, rnd, 8+rnd.IntN(8), func() {
		if rnd.IntN(4) == 0 {
			w.wire.SetBoth(faultwire.Faults{Cut: true})
			time.AfterFunc(time.Duration(rnd.IntN(5000))*time.Millisecond, func() { w.wire.SetBoth(usual) })
		}
	})
}
