// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A good cable: everything arrives, unchanged, in order, both ways at once.
func TestGoodCable(t *testing.T) {
	w := New(t, Options{})
	a, b := newProbes(t, w)
	const n = 500
	for _, way := range [][2]*probe{{a, b}, {b, a}} {
		got := exchange(t, way[0], way[1], 0, n)
		if len(got) != n || !slices.IsSorted(got) || slices.Contains(got, -1) {
			t.Errorf("of %d frames %d arrived, in order: %v", n, len(got), slices.IsSorted(got))
		}
	}
	s := w.Stats()
	for _, d := range []Direction{AtoB, BtoA} {
		if s[d][Forwarded] < n || s[d][Forwarded] != s[d][Received] {
			t.Errorf("%v: %v", d, s)
		}
	}
}

// ARP and ICMP, by which UDP mode finds its way, pass through the wire.
func TestKernelTrafficPasses(t *testing.T) {
	w := New(t, Options{})
	var c net.Conn
	if err := w.A.Do(func() (err error) { c, err = net.Dial("ip4:icmp", w.B.IP4.String()); return err }); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(testnet.Patience))
	// Echo request (RFC 792): type 8, code 0, checksum, identifier, number.
	if _, err := c.Write([]byte{8, 0, 0x08, 0xb8, 0x88, 0xb5, 0x66, 0x92}); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 64)
	if n, err := c.Read(reply); err != nil || n != 28 || reply[20] != 0 {
		t.Errorf("reply %x, %v", reply[:max(n, 0)], err)
	}
}

// A side that appears with another address is found by ARP, and reached only at its new
// address.
func TestReaddress(t *testing.T) {
	w := New(t, Options{})
	for _, way := range [][2]*testnet.Side{{w.A, w.B}, {w.B, w.A}} {
		from, to := way[0], way[1]
		provoke := func() { // makes the kernel send something
			t.Helper()
			err := from.Do(func() error {
				c, err := net.Dial("udp4", net.JoinHostPort(to.IP4.String(), "9"))
				if err != nil {
					return err
				}
				_, _ = c.Write([]byte{0}) // may be refused
				return c.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		known := func(mac net.HardwareAddr) {
			t.Helper()
			testnet.IP(t, from, "neigh flush dev "+from.IfName)
			testnet.Eventually(t, "the address is known as "+mac.String(), func() bool {
				provoke()
				return strings.Contains(testnet.IP(t, from, "neigh show to "+to.IP4.String()), mac.String())
			})
		}
		mac := net.HardwareAddr{2, 0, 0, 0, 0, 0x55}
		w.Readdress(to, mac)
		known(mac)
		before := w.Stats()
		testnet.IP(t, from, fmt.Sprintf("neigh replace %v lladdr %v dev %s nud reachable", to.IP4, to.MAC, from.IfName))
		testnet.Eventually(t, "what is sent to the former address is lost", func() bool {
			provoke()
			now := w.Stats()
			return now.Total(Astray) > before.Total(Astray)
		})
		w.Readdress(to, nil)
		known(to.MAC)
	}
}

// Each fault alone does what it says and nothing else, in its direction only.
func TestEachFault(t *testing.T) {
	const n = 400
	cases := []struct {
		name   string
		faults Faults
		event  Event
		check  func(got []int, events int) bool
	}{
		{"cut", Faults{Cut: true}, Cut, func(got []int, e int) bool { return len(got) == 0 && e == n }},
		{"loss", Faults{Loss: 0.3}, Lost, func(got []int, e int) bool { return e == n-len(got) && slices.IsSorted(got) }},
		{"duplicate", Faults{Duplicate: 0.3}, Duplicated, func(got []int, e int) bool { return e == len(got)-n }},
		{"reorder", Faults{Reorder: 0.3, ReorderBy: 100 * time.Millisecond}, Reordered, func(got []int, _ int) bool {
			in := slices.IsSorted(got)
			slices.Sort(got)
			return !in && len(slices.Compact(got)) == n
		}},
		{"corrupt", Faults{Corrupt: 1}, Corrupted, func(got []int, e int) bool {
			bad := 0
			for _, g := range got {
				if g < 0 || g >= n {
					bad++
				}
			}
			return e == n && bad > n/2
		}},
		{"truncate", Faults{Truncate: 1}, Truncated, func(got []int, e int) bool {
			return e == n && !slices.ContainsFunc(got, func(g int) bool { return g >= 0 })
		}},
		{"replay", Faults{Replay: 0.3}, Replayed, func(got []int, e int) bool { return e == len(got)-n && !slices.IsSorted(got) }},
		{"delay", Faults{Delay: 5 * time.Millisecond}, Delayed, func(got []int, e int) bool { return len(got) == n && e == n && slices.IsSorted(got) }},
		{"clog", Faults{Clog: 0.1, ClogTime: 5 * time.Millisecond}, Clogged, func(got []int, _ int) bool { return len(got) == n && slices.IsSorted(got) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := New(t, Options{Seed: 7})
			a, b := newProbes(t, w)
			base := w.Stats()
			w.Set(AtoB, c.faults)
			got := exchange(t, a, b, 0, n)
			s := w.Stats()
			if e := int(s[AtoB][c.event] - base[AtoB][c.event]); e == 0 || !c.check(got, e) {
				t.Errorf("%d frames sent, %d received, %d × %v; %v", n, len(got), e, c.event, s)
			}
			if back := exchange(t, b, a, 0, 50); len(back) != 50 || !slices.IsSorted(back) {
				t.Errorf("the other direction has lost %d of 50 frames", 50-len(back))
			}
			w.SetBoth(Faults{})
			if again := exchange(t, a, b, 0, 50); len(again) < 50 {
				t.Errorf("healed, but %d of 50 frames arrive", len(again))
			}
		})
	}
}

// The delay queue is bounded, and frames that fit arrive late but undamaged.
func TestDelayQueueIsBounded(t *testing.T) {
	const fit, n = 100, 150
	w := New(t, Options{Queue: fit})
	a, b := newProbes(t, w)
	for delay := 300 * time.Millisecond; ; delay *= 2 {
		w.Set(AtoB, Faults{Delay: delay})
		base := w.Stats()
		for i := range n {
			a.send(t, i)
		}
		done := a.sent(t, base, n)
		early := done[Forwarded] > 0
		if !early && done[Overflowed] != n-fit {
			t.Errorf("%d frames sent, %d overflowed: want %d", n, done[Overflowed], n-fit)
		}
		for i := range n - done[Overflowed] {
			if got := number(b.receive(t)); got != i && !early {
				t.Fatalf("frame %d arrived, want %d", got, i)
			}
		}
		if !early {
			return
		}
		// On a busy machine the first frame was due before the last was sent.
		t.Logf("sending took longer than %v", delay)
	}
}

// A replay reaches back to frames much older than any queue.
func TestReplaysAreOld(t *testing.T) {
	w := New(t, Options{Seed: 1})
	a, b := newProbes(t, w)
	exchange(t, a, b, 0, 600)
	w.Set(AtoB, Faults{Replay: 1})
	old := 0
	for _, n := range exchange(t, a, b, 10_000, 40) {
		if n >= 0 && n < 300 {
			old++
		}
	}
	if old == 0 {
		t.Error("no frame of the first half came again")
	}
}

func TestImpossibleSettings(t *testing.T) {
	for _, f := range []Faults{{Loss: -0.1}, {Replay: 1.1}, {Delay: -1}, {Jitter: time.Hour}, {Storm: -1}} {
		if _, err := f.check(); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	if _, err := Open(Options{MTU: 9000}); err == nil {
		t.Error("an MTU of 9000 is accepted")
	}
}

// Nothing is left behind, and closing twice is no error.
func TestClose(t *testing.T) {
	testnet.Require(t)
	w, err := Open(Options{MTU: 3000})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{w.A.Name, w.B.Name, w.pairs[0].B.Name, w.pairs[1].A.Name}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range names {
		if _, err := os.Stat("/run/netns/" + n); err == nil {
			t.Errorf("namespace %s is left", n)
		}
	}
}
