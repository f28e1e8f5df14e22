// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeNIC is a NIC whose process is killed at the call of number dies.
type fakeNIC struct {
	table, own       []uint32
	rules            map[uint32]Rule
	noTable, noRules error // what it says instead
	noRule           error // likewise, to Insert alone
	deaf             bool  // it accepts a table, and keeps its own
	calls, dies      int
	changes          int
}

var errKilled = errors.New("killed")

// newFake has eight queues, an indirection table of 16, and somebody else's rule.
func newFake() *fakeNIC {
	d := &fakeNIC{rules: map[uint32]Rule{7: {EtherType: 0x88b5, Queue: 0}, 3: {}}}
	for i := range uint32(16) {
		d.own = append(d.own, i%8)
	}
	d.table = slices.Clone(d.own)
	return d
}

// call panics where the process is killed.
func (d *fakeNIC) call() {
	if d.calls++; d.calls == d.dies {
		panic(errKilled)
	}
}

func (d *fakeNIC) Table() ([]uint32, error) {
	if d.call(); d.noTable != nil {
		return nil, d.noTable
	}
	return slices.Clone(d.table), nil
}

func (d *fakeNIC) SetTable(t []uint32) error {
	d.call()
	d.changes++
	switch {
	case d.noTable != nil || d.deaf:
	case t == nil:
		d.table = slices.Clone(d.own)
	default:
		d.table = slices.Clone(t)
	}
	d.call() // it was done, and nobody has heard
	return d.noTable
}

func (d *fakeNIC) Rules() (map[uint32]Rule, error) {
	d.call()
	if d.noRules != nil {
		return nil, d.noRules
	}
	return maps.Clone(d.rules), nil
}

func (d *fakeNIC) Insert(r Rule) error {
	d.call()
	if err := errors.Join(d.noRules, d.noRule); err != nil {
		return err
	}
	place := uint32(15)
	for d.rules[place] != (Rule{}) {
		place--
	}
	d.changes++
	d.rules[place] = r
	d.call()
	return nil
}

func (d *fakeNIC) Delete(place uint32) error {
	d.call()
	d.changes++
	delete(d.rules, place)
	d.call()
	return d.noRules
}

// state is what there is to restore.
func (d *fakeNIC) state() string { return fmt.Sprint(d.table, d.rules) }

// eth0 is a NIC of eight queues that is to use some of them, with UDP.
func eth0(use int) *Steered {
	return &Steered{Interface: Interface{Name: "eth0", Driver: "fake", RXQueues: 8}, Use: use, UDP: true,
		Identity: Identity{Boot: "today", Driver: "fake", Bus: "0000:01:00.0", MAC: "02:00:00:00:00:01", Index: 4}}
}

// unsteer undoes the steering of a NIC, without a note.
func unsteer(t *testing.T, d *fakeNIC, path string, n *Steered) {
	t.Helper()
	if notes, err := Unsteer(d, path, n); err != nil || len(notes) > 0 {
		t.Fatalf("undone: %q, %v", notes, err)
	}
}

// killed runs f until the driver's call at which the process dies, and reports whether
// it came to that.
func (d *fakeNIC) killed(at int, f func()) (died bool) {
	d.calls, d.dies = 0, at
	defer func() {
		d.dies = 0
		if r := recover(); r != nil {
			if r != errKilled {
				panic(r)
			}
			died = true
		}
	}()
	f()
	return false
}

// Hashed traffic goes to the queues in use, raw Ethernet to queue 0, and everything is
// put back, also by the next process, whichever call was the last of a process that died.
// With one queue and rules the table is left alone.
func TestSteer(t *testing.T) {
	for _, c := range []struct {
		use    int
		custom bool
		rules  int
	}{{3, false, 1}, {3, true, 1}, {1, false, 3}, {1, true, 3}} {
		for at := 1; ; at++ {
			d, path := newFake(), filepath.Join(t.TempDir(), "eth0.steer")
			if c.custom {
				d.table[5] = 6 // the administrator's
			}
			was, table := d.state(), slices.Clone(d.table)
			died := d.killed(at, func() {
				s, _, err := Steer(d, path, eth0(c.use))
				if err != nil || !s.Rule || s.Why != "" || s.Table != (c.use > 1) || s.Ports != (c.use == 1) {
					t.Fatalf("%+v, %v", s, err)
				}
				if len(d.rules) != 2+c.rules || d.rules[15] != (Rule{EtherType: 0x88b5}) {
					t.Fatalf("steered to %v", d.state())
				}
				even := d.table[4] == 1 && slices.Max(d.table) == 2
				if even != s.Table || !even && !slices.Equal(d.table, table) {
					t.Fatalf("steered to %v", d.state())
				}
				if notes, err := s.Undo(); err != nil || len(notes) > 0 {
					t.Fatal(notes, err)
				}
			})
			unsteer(t, d, path, eth0(c.use))
			if d.state() != was {
				t.Fatalf("%+v: death at call %d: %v; want %v", c, at, d.state(), was)
			}
			if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
				t.Fatalf("death at call %d: left over: %v", at, left)
			}
			if !died {
				if at < 10 {
					t.Fatalf("%d calls: want more", at)
				}
				break
			}
		}
	}
}

// The next process goes on with what a former one has set for as many queues, and it is
// undone to what was there before the former one.
func TestSteerAgain(t *testing.T) {
	d, path := newFake(), filepath.Join(t.TempDir(), "eth0.steer")
	was := d.state()
	for _, use := range []int{3, 3, 2, 1, 2} {
		before := d.changes
		s, notes, err := Steer(d, path, eth0(use))
		if err != nil || len(notes) > 0 || !s.Rule || s.Table && slices.Max(d.table) != uint32(use-1) {
			t.Fatalf("%+v, %q, %v: %v", s, notes, err, d.state())
		}
		if again := use == 3 && before > 0; again && d.changes != before {
			t.Errorf("%d changes to what is set already", d.changes-before)
		}
	}
	d.table[0] = 5 // the administrator's, from now on
	want := slices.Clone(d.table)
	notes, err := Unsteer(d, path, eth0(2))
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "it is left") || !slices.Equal(d.table, want) ||
		len(d.rules) != 2 {
		t.Errorf("%q, %v, %v; want the table that somebody has set, and no rule", notes, err, d.state())
	}
	d = newFake()
	if _, _, err := Steer(d, path, eth0(3)); err != nil {
		t.Fatal(err)
	}
	if unsteer(t, d, path, eth0(3)); d.state() != was {
		t.Errorf("%v, want %v", d.state(), was)
	}
}

// What a driver cannot do is said, and nothing is left half done.
func TestSteerRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		use    int
		change func(*fakeNIC)
		why    string // if it is steered in part
		err    string
	}{
		{"nothing", 3, func(d *fakeNIC) { d.noTable, d.noRules = unix.EOPNOTSUPP, unix.EOPNOTSUPP }, "", "driver fake"},
		{"no rules", 3, func(d *fakeNIC) { d.noRules = unix.EOPNOTSUPP }, "no rules: operation not supported", ""},
		{"no such rule", 3, func(d *fakeNIC) { d.noRule = unix.EINVAL },
			"no rule on EtherType 0x88b5: invalid argument", ""},
		{"no table", 3, func(d *fakeNIC) { d.noTable = unix.EOPNOTSUPP }, "no indirection table", ""},
		{"no table, no rule", 1, func(d *fakeNIC) { d.noTable, d.noRule = unix.EOPNOTSUPP, unix.EINVAL }, "",
			"no rule on UDP port 34997 over IPv6"},
		{"not kept", 3, func(d *fakeNIC) { d.deaf, d.noRule = true, unix.EINVAL }, "", "took the indirection table, and has another: [0 1 2"},
	} {
		d, path := newFake(), filepath.Join(t.TempDir(), "eth0.steer")
		c.change(d)
		was := d.state()
		s, _, err := Steer(d, path, eth0(c.use))
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		case c.err == "" && (err != nil || !strings.Contains(s.Why, c.why)):
			t.Errorf("%s: %+v, %v; want %q", c.name, s, err, c.why)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: several lines: %v", c.name, err)
		}
		if c.name == "no table" && (!s.Ports || len(d.rules) != 5) {
			t.Errorf("%s: %v: want UDP on queue 0", c.name, d.state())
		}
		if unsteer(t, d, path, eth0(c.use)); d.state() != was {
			t.Errorf("%s: %v; want %v", c.name, d.state(), was)
		}
	}
}

// What is known of a driver's rules goes with what it lacks.
func TestSteerSaysWhatIsKnown(t *testing.T) {
	d, n := newFake(), eth0(3)
	d.noRules, n.Driver = unix.EOPNOTSUPP, "ixgbe"
	s, _, err := Steer(d, filepath.Join(t.TempDir(), "eth0.steer"), n)
	want := "its driver takes rules on UDP ports, by source: after ethtool -K eth0 ntuple on"
	if err != nil || !strings.Contains(s.Why, want) {
		t.Errorf("%+v, %v; want %q", s, err, want)
	}
}
