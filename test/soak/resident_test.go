// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// In a world that is resident the XDP program executes what is for the region. A daemon
// keeps it in a folder of a BPF file system of the test's own, so it outlives a kill.

// oldest is the first Linux that can have resident regions.
var oldest = kernel.Version{Major: 5, Minor: 18}

// canReside reports whether this kernel can have resident regions.
var canReside = sync.OnceValue(func() bool {
	release, err := kernel.Release()
	if err != nil {
		return false
	}
	v, err := kernel.Parse(release)
	return err == nil && v.AtLeast(oldest)
})

func requireResident(t *testing.T) {
	t.Helper()
	testnet.Require(t)
	if !canReside() {
		t.Skipf("needs Linux %d.%d", oldest.Major, oldest.Minor)
	}
}

// reside gives the daemon a resident region.
func (d *daemon) reside(t *testing.T) {
	t.Helper()
	d.pins = filepath.Join(testnet.BPFFS(t), "node")
	d.args = append(d.args, "--pin", d.pins, "--region", fmt.Sprintf("r=%d:key=%d,resident", regionSize, regionKey))
}

// memory is the memory of the daemon's region with regionKey. If that is resident, it is
// the same map for as long as it is pinned, whichever process serves it.
func (d *daemon) memory(t *testing.T) []byte {
	t.Helper()
	if d.pins == "" {
		return d.file
	}
	found, err := filepath.Glob(filepath.Join(d.pins, "v*", fmt.Sprintf("memory-%d-*", regionSize)))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%v: want the memory of one region in %s", found, d.pins)
	}
	m, err := ebpf.LoadPinnedMap(found[0], nil)
	must(t, err)
	defer m.Close()
	mem, err := unix.Mmap(m.FD(), 0, regionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem
}

// counts are the server's statistics; none if it cannot say.
func (w *world) counts() (n map[string]uint64) {
	if w.server != nil {
		n, _ = w.server.Stats()
	} else if s, err := w.daemon.status(w.t); err == nil {
		n = s.Counters
	}
	return n
}

// countResident adds to the tally what the program has executed since the server started.
func (w *world) countResident() {
	if w.forgetful {
		return
	}
	counts := w.counts()
	for _, what := range []string{"resident_ops_executed", "resident_passed", "resident_duplicates", "resident_early"} {
		survived.add(what, int(counts[what]))
	}
}

// warm has every actor complete an operation, one after the other, so that all sessions
// are resident before the first death: one that begins ends with the process.
func (c *crew) warm() *crew {
	c.w.t.Helper()
	for _, a := range c.actors {
		a.again()
	}
	return c
}

// kills kills the daemon and starts it again, n times in a weather of its own.
func (w *world) kills(n int, rnd *rand.Rand, weather func() faultwire.Faults) {
	w.t.Helper()
	for range n {
		w.wire.SetBoth(weather())
		time.Sleep(time.Duration(20+rnd.IntN(150)) * time.Millisecond)
		w.countResident()
		time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond) // it is not doing that when it dies
		w.daemon.kill(w.t)
		time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
		w.daemon.start(w.t)
	}
}

// blurred checks a crew after deaths that may have met a frame in user space: only what
// was under way then met a restart, and everything else has run. What waited to be sent
// was not executed, since it names no registration.
func (c *crew) blurred(deaths int) {
	t := c.w.t
	t.Helper()
	c.finish(true)
	for i, a := range c.actors {
		var n [numFates]int
		for _, p := range a.posts {
			n[p.fate]++
		}
		lost := len(a.posts) - n[ok]
		if most := deaths * a.depth; lost > most {
			t.Errorf("actor %d: %d operations did not succeed; want at most the %d that %d deaths can have met under way", i, lost, most, deaths)
		}
	}
}

// die kills and restarts a daemon whose region is resident. Operations that the program
// executes see nothing of it, nor calls.
func die(t *testing.T, w *world, p plan, rnd *rand.Rand, deaths int, weather func() faultwire.Faults) {
	t.Helper()
	c := w.hire(p).warm().start()
	calls := &callers{w: w}
	if !p.mixed {
		calls = w.call(1+rnd.IntN(3), 10*time.Millisecond, rnd.Uint64())
	}
	w.kills(deaths, rnd, weather)
	w.heal()
	if p.mixed {
		c.blurred(deaths)
	} else {
		c.settled()
	}
	calls.finish()
}

// residentDeaths are deaths in any weather, with patient clients.
func residentDeaths(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, lively)
	s.process, s.resident = true, true
	w := newWorld(t, s)
	defer burden(t, rnd)()
	die(t, w, p, rnd, 4, func() faultwire.Faults { return mixed(rnd) })
}

// The daemon is killed in a loop. With operations for the program alone, every one
// succeeds, and the calls beside them; with others in between, only those under way at a
// death may meet a restart.
func TestResidentDaemonKilled(t *testing.T) {
	light := func() faultwire.Faults {
		return faultwire.Faults{Loss: 0.02, Duplicate: 0.1, Replay: 0.2, Reorder: 0.05, Jitter: time.Millisecond}
	}
	for _, mixed := range []bool{false, true} {
		t.Run(fmt.Sprintf("mixed=%v", mixed), func(t *testing.T) {
			w := newWorld(t, setting{seed: 12, process: true, resident: true, udp: mixed, client: xdpfab.DomainAttr{GiveUp: lively}})
			p := plan{actors: 3, depth: 16, limit: 100000, seed: 12, pace: 50 * time.Microsecond, mixed: mixed}
			die(t, w, p, rand.New(rand.NewPCG(12, 12)), 3, light)
			w.executed(mixed)
		})
	}
}

// executed checks that the program of the present server has executed operations and, if
// some were not for it, has passed those on.
func (w *world) executed(mixed bool) {
	w.t.Helper()
	if n := w.counts(); n["resident_ops_executed"] == 0 || mixed && n["resident_passed"] == 0 {
		w.t.Errorf("mixed %v, and the program has executed %d operations and passed %d frames", mixed, n["resident_ops_executed"], n["resident_passed"])
	}
}

// All faults at once, with operations for the program alone, and with others: all
// succeed.
func TestResidentEverythingAtOnce(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		t.Run(fmt.Sprintf("mixed=%v", mixed), func(t *testing.T) {
			w := newWorld(t, setting{seed: 13, resident: true, udp: !mixed, client: xdpfab.DomainAttr{GiveUp: lively}})
			w.wire.SetBoth(everything)
			c := w.hire(plan{actors: 4, depth: 32, limit: 100000, seed: 13, pace: 50 * time.Microsecond, mixed: mixed}).start()
			time.Sleep(300 * time.Millisecond)
			w.heal()
			// On a slow machine the sessions become resident after that.
			testnet.Eventually(t, "the program executes, and passes on what is not for it", func() bool {
				n := w.counts()
				return n["resident_ops_executed"] > 0 && (!mixed || n["resident_passed"] > 0)
			})
			c.settled()
		})
	}
}

// Several clients of one resident word, while the daemon dies and comes back.
func TestResidentLinearizable(t *testing.T) {
	w := newWorld(t, setting{seed: 14, process: true, resident: true, client: xdpfab.DomainAttr{GiveUp: 60 * time.Millisecond}})
	rnd := rand.New(rand.NewPCG(14, 14))
	for i := range 2 {
		clear(w.mem[:8])
		linear(t, w, plan{actors: 3, depth: 1, limit: 60, seed: uint64(i)}, func() {
			w.kills(1, rnd, func() faultwire.Faults { return everything })
			w.heal()
		})
	}
}
