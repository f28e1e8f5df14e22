// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A good cable: everything arrives, unchanged, in order, both ways at once.
func TestGoodCable(t *testing.T) {
	w := New(t, Options{})
	a, b := newProbe(t, w.A, w.B), newProbe(t, w.B, w.A)
	const n = 500
	for _, way := range [][2]*probe{{a, b}, {b, a}} {
		got := exchange(t, way[0], way[1], n)
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

// ARP and ICMP go through, which UDP mode needs to find its way.
func TestKernelTrafficPasses(t *testing.T) {
	w := New(t, Options{})
	var c net.Conn
	if err := w.A.Do(func() (err error) { c, err = net.Dial("ip4:icmp", w.B.IP4.String()); return err }); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience * time.Millisecond))
	// Echo request (RFC 792): type 8, code 0, checksum, identifier, number.
	if _, err := c.Write([]byte{8, 0, 0x08, 0xb8, 0x88, 0xb5, 0x66, 0x92}); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 64)
	if n, err := c.Read(reply); err != nil || n != 28 || reply[20] != 0 {
		t.Errorf("reply %x, %v", reply[:max(n, 0)], err)
	}
}

// about allows for the few frames that the kernel sends on its own (multicast
// listener reports): they meet faults too, but probes do not see them.
func about(events, want int) bool { return events >= want && events <= want+10 }

// Each fault alone does what it says and nothing else, in its direction only.
func TestEachFault(t *testing.T) {
	const n = 400
	cases := []struct {
		name   string
		faults Faults
		event  Event
		check  func(got []int, events int) bool
	}{
		{"cut", Faults{Cut: true}, Cut, func(got []int, e int) bool { return len(got) == 0 && about(e, n) }},
		{"loss", Faults{Loss: 0.3}, Lost, func(got []int, e int) bool { return about(e, n-len(got)) && slices.IsSorted(got) }},
		{"duplicate", Faults{Duplicate: 0.3}, Duplicated, func(got []int, e int) bool { return about(e, len(got)-n) }},
		{"reorder", Faults{Reorder: 0.3, ReorderBy: 5 * time.Millisecond}, Reordered, func(got []int, _ int) bool {
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
			return about(e, n) && bad > n/2
		}},
		{"truncate", Faults{Truncate: 1}, Truncated, func(got []int, e int) bool {
			return about(e, n) && !slices.ContainsFunc(got, func(g int) bool { return g >= 0 })
		}},
		{"replay", Faults{Replay: 0.3}, Replayed, func(got []int, e int) bool { return about(e, len(got)-n) && !slices.IsSorted(got) }},
		{"delay", Faults{Delay: 5 * time.Millisecond}, Delayed, func(got []int, e int) bool { return len(got) == n && about(e, n) && slices.IsSorted(got) }},
		{"clog", Faults{Clog: 0.1, ClogTime: 5 * time.Millisecond}, Clogged, func(got []int, _ int) bool { return len(got) == n && slices.IsSorted(got) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := New(t, Options{Seed: 7})
			a, b := newProbe(t, w.A, w.B), newProbe(t, w.B, w.A)
			base := w.Stats()
			w.Set(AtoB, c.faults)
			got := exchange(t, a, b, n)
			s := w.Stats()
			if e := int(s[AtoB][c.event] - base[AtoB][c.event]); e == 0 || !c.check(got, e) {
				t.Errorf("%d frames sent, %d received, %d × %v; %v", n, len(got), e, c.event, s)
			}
			if back := exchange(t, b, a, 50); len(back) != 50 || !slices.IsSorted(back) {
				t.Errorf("the other direction has lost %d of 50 frames", 50-len(back))
			}
			w.SetBoth(Faults{})
			if again := exchange(t, a, b, 50); len(again) < 50 {
				t.Errorf("healed, but %d of 50 frames arrive", len(again))
			}
		})
	}
}

// The delay queue is bounded, and what fits arrives late but whole.
func TestDelayQueueIsBounded(t *testing.T) {
	w := New(t, Options{Queue: 100})
	a, b := newProbe(t, w.A, w.B), newProbe(t, w.B, w.A)
	w.Set(AtoB, Faults{Delay: 300 * time.Millisecond})
	for i := range 150 {
		a.send(t, i)
	}
	n := 0
	for b.receive(t, 600) != nil {
		n++
	}
	s := w.Stats()
	if s[AtoB][Overflowed] == 0 || uint64(n)+s[AtoB][Overflowed] < 150 {
		t.Errorf("150 frames sent, %d received, overflowed %d", n, s[AtoB][Overflowed])
	}
}

// A replay reaches back to frames much older than any queue.
func TestReplaysAreOld(t *testing.T) {
	w := New(t, Options{Seed: 1})
	a, b := newProbe(t, w.A, w.B), newProbe(t, w.B, w.A)
	exchange(t, a, b, 600)
	w.Set(AtoB, Faults{Replay: 1})
	for i := range 40 {
		a.send(t, 10_000+i)
	}
	old := 0
	for f := b.receive(t, settled); f != nil; f = b.receive(t, settled) {
		if n := number(f); n >= 0 && n < 300 {
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
