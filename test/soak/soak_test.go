// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// scenario is a few seconds of trouble. Everything in it is drawn from rnd.
type scenario struct {
	name string
	run  func(t *testing.T, rnd *rand.Rand)
}

var scenarios = []scenario{
	{"weather", weather},
	{"partitions", partitions},
	{"slow", slow},
	{"daemon kills", daemonKills},
	{"client kills", clientKills},
	{"histories", histories},
	{"storm", storm},
	{"movements", movements},
	{"deadlines", deadlines},
	{"guest kills", guestKills},
	{"resident deaths", residentDeaths},
	{"takeovers", takeovers},
	{"shared parts", sharedParts},
}

// TestSoak draws scenarios until the time is over. A failure names its seed; that
// seed given by -seed draws the same scenarios from the failed one on.
func TestSoak(t *testing.T) {
	if *minutes <= 0 {
		t.Skip("a soak takes time: make soak MINUTES=3, or go test ./test/soak -v -run TestSoak -minutes 3 -timeout 0")
	}
	testnet.Require(t)
	next := *seed
	if next == 0 {
		next = rand.Uint64() >> 1
	}
	start := time.Now()
	end, said, rounds := start.Add(time.Duration(*minutes*float64(time.Minute))), start, 0
	defer func() {
		fmt.Printf("survived in %v, %d rounds, last seed %d:\n%v", time.Since(start).Round(time.Second), rounds, next-1, &survived)
	}()
	if *minutes >= 2 { // it runs in parallel with everything else
		defer retirement(t, false)()
		defer retirement(t, canReside())()
	}
	for ; time.Now().Before(end); rounds, next = rounds+1, next+1 {
		rnd := rand.New(rand.NewPCG(next, next))
		s := scenarios[rnd.IntN(len(scenarios))]
		if !t.Run(s.name, func(t *testing.T) {
			t.Logf("seed %d", next)
			s.run(t, rnd)
		}) {
			fmt.Printf("FAILED: scenario %q; repeat with -seed %d\n", s.name, next)
			return
		}
		if now := time.Now(); now.Sub(said) >= 10*time.Second {
			said = now
			fmt.Fprintln(os.Stdout, survived.line(start, rounds+1))
		}
	}
}

// draw is a random world and plan. Half of the worlds are resident.
func draw(rnd *rand.Rand, giveUp time.Duration) (setting, plan) {
	s := setting{seed: rnd.Uint64(), udp: rnd.IntN(2) == 0, process: rnd.IntN(3) == 0, resident: resides(rnd)}
	s.client = xdpfab.DomainAttr{GiveUp: giveUp, Window: rnd.IntN(3) * rnd.IntN(33), Progress: fi.ProgressMode(rnd.IntN(2))}
	s.server = xdpfab.DomainAttr{Window: rnd.IntN(3) * rnd.IntN(33)}
	return s, plan{
		actors: 1 + rnd.IntN(6), depth: 1 << rnd.IntN(9), limit: 20000, seed: rnd.Uint64(), size: 256,
		pace: time.Duration(20+rnd.IntN(200)) * time.Microsecond, mixed: rnd.IntN(2) == 0,
	}
}

// resides draws whether a world is resident, if the kernel can have such.
func resides(rnd *rand.Rand) bool { return rnd.IntN(2) == 0 && canReside() }

// burden loads the cores in one of four cases.
func burden(t *testing.T, rnd *rand.Rand) (end func()) {
	if rnd.IntN(4) > 0 {
		return func() {}
	}
	return hogs(t, 2)
}

// weather changes the faults every now and then.
func weather(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, 20*time.Second)
	w := newWorld(t, s)
	defer burden(t, rnd)()
	c := w.hire(p).start()
	for range 6 {
		w.wire.Set(faultwire.AtoB, mixed(rnd))
		w.wire.Set(faultwire.BtoA, mixed(rnd))
		time.Sleep(time.Duration(50+rnd.IntN(300)) * time.Millisecond)
	}
	w.heal()
	c.finish(true)
}

// partitions cuts for shorter and longer than the give-up time, in bad weather.
func partitions(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, 150*time.Millisecond)
	w := newWorld(t, s)
	c := w.hire(p).start()
	for range 4 {
		w.wire.SetBoth(mixed(rnd))
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
		partition(w, rnd, time.Duration(20+rnd.IntN(400))*time.Millisecond)
	}
	c.finish(true)
}

// slow has delays of up to a second each way, and stalls of the server.
func slow(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, 30*time.Second)
	p.limit = 300
	w := newWorld(t, s)
	c := w.hire(p).start()
	w.wire.Set(faultwire.Direction(rnd.IntN(2)), faultwire.Faults{
		Delay: time.Duration(rnd.IntN(1000)) * time.Millisecond, Jitter: time.Duration(rnd.IntN(500)) * time.Millisecond})
	if w.daemon != nil {
		w.daemon.stall(t, time.Duration(rnd.IntN(1000))*time.Millisecond)
	}
	time.Sleep(1500 * time.Millisecond)
	w.heal()
	c.finish(true)
}

// daemonKills kills and restarts the server, with its memory in a file.
func daemonKills(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, time.Duration(200+rnd.IntN(5000))*time.Millisecond)
	s.process = true
	w := newWorld(t, s)
	defer burden(t, rnd)()
	c := w.hire(p).start()
	w.kills(4, rnd, func() faultwire.Faults { return mixed(rnd) })
	w.heal()
	c.finish(true)
}

// clientKills kills clients.
func clientKills(t *testing.T, rnd *rand.Rand) {
	w := newWorld(t, setting{seed: rnd.Uint64(), udp: rnd.IntN(2) == 0, process: true, resident: resides(rnd)})
	must(t, w.client.CloseAll())
	if w.addr == w.wire.B.MAC.String() { // UDP resolves by ARP, which gives up sooner than this weather ends
		w.wire.SetBoth(mixed(rnd))
	}
	killClients(t, w, 4, lively)
}

// histories checks linearizability.
func histories(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, 60*time.Millisecond)
	s.process = s.resident // the word is set to zero between histories, and a file is mapped for reading
	w := newWorld(t, s)
	p.actors, p.depth, p.limit = 3, 1, 60
	for range 3 {
		clear(w.mem[:8])
		p.seed = rnd.Uint64()
		linear(t, w, p, func() {
			for range 3 {
				w.wire.SetBoth(mixed(rnd))
				time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
				partition(w, rnd, time.Duration(rnd.IntN(150))*time.Millisecond)
			}
			if w.daemon != nil {
				w.kills(1, rnd, func() faultwire.Faults { return mixed(rnd) })
				w.heal()
			}
		})
	}
}

// storm overflows rings with frames of the past.
func storm(t *testing.T, rnd *rand.Rand) {
	s, p := draw(rnd, 20*time.Second)
	w := newWorld(t, s)
	defer burden(t, rnd)()
	c := w.hire(p).start()
	for range 4 {
		f := mixed(rnd)
		f.Replay, f.Storm = 0.02, 1+rnd.IntN(1000)
		w.wire.Set(faultwire.Direction(rnd.IntN(2)), f)
		time.Sleep(time.Duration(50+rnd.IntN(200)) * time.Millisecond)
	}
	w.heal()
	c.finish(true)
}
