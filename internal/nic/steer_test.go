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
	d.call()
	return slices.Clone(d.table), d.noTable
}

func (d *fakeNIC) SetTable(t []uint32) error {
	d.call()
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
	d.rules[15] = r
	d.call()
	return nil
}

func (d *fakeNIC) Delete(place uint32) error {
	d.call()
	delete(d.rules, place)
	d.call()
	return d.noRules
}

// state is what there is to restore.
func (d *fakeNIC) state() string { return fmt.Sprint(d.table, d.rules) }

var eth0 = &Interface{Name: "eth0", Index: 4, MAC: "02:00:00:00:00:01", Driver: "fake", RXQueues: 8}

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
func TestSteer(t *testing.T) {
	for _, custom := range []bool{false, true} {
		for at := 1; ; at++ {
			d, path := newFake(), filepath.Join(t.TempDir(), "eth0.steer")
			if custom {
				d.table[5] = 6 // the administrator's
			}
			was := d.state()
			died := d.killed(at, func() {
				s, err := Steer(d, path, eth0, 3)
				if err != nil || !s.Rule || s.Why != "" {
					t.Fatalf("%+v, %v", s, err)
				}
				if d.rules[15] != (Rule{EtherType: 0x88b5}) || slices.Max(d.table) != 2 || d.table[4] != 1 {
					t.Fatalf("steered to %v", d.state())
				}
				if err := s.Undo(eth0); err != nil {
					t.Fatal(err)
				}
			})
			if err := Unsteer(d, path, eth0); err != nil {
				t.Fatalf("death at call %d: %v", at, err)
			}
			if d.state() != was {
				t.Fatalf("death at call %d: %v; want %v", at, d.state(), was)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("death at call %d: the file is left: %v", at, err)
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
	for _, queues := range []int{3, 3, 2} {
		s, err := Steer(d, path, eth0, queues)
		if err != nil || !s.Rule || slices.Max(d.table) != uint32(queues-1) || len(d.rules) != 3 {
			t.Fatalf("%+v, %v: %v", s, err, d.state())
		}
	}
	d.table[0] = 5 // the administrator's, from now on
	want := slices.Clone(d.table)
	if err := Unsteer(d, path, eth0); err != nil || !slices.Equal(d.table, want) || len(d.rules) != 2 {
		t.Errorf("%v, %v; want the table that somebody has set, and no rule", err, d.state())
	}
	d = newFake()
	if _, err := Steer(d, path, eth0, 3); err != nil {
		t.Fatal(err)
	}
	other := *eth0
	other.Index++ // it was removed, and is another one
	d = newFake()
	if err := Unsteer(d, path, &other); err != nil || d.state() != was {
		t.Errorf("%v, %v", err, d.state())
	}
}

// What a driver cannot do is said, and nothing is left half done.
func TestSteerRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fakeNIC)
		why    string // if it is steered in part
		err    string
	}{
		{"nothing", func(d *fakeNIC) { d.noTable, d.noRules = unix.EOPNOTSUPP, unix.EOPNOTSUPP }, "", "driver fake"},
		{"no rules", func(d *fakeNIC) { d.noRules = unix.EOPNOTSUPP }, "no rules on EtherTypes", ""},
		{"no such rule", func(d *fakeNIC) { d.noRule = unix.EINVAL }, "no rule on the EtherType: invalid argument", ""},
		{"no table", func(d *fakeNIC) { d.noTable = unix.EOPNOTSUPP }, "no indirection table", ""},
		{"not kept", func(d *fakeNIC) { d.deaf = true }, "", "was set, and is another"},
	} {
		d, path := newFake(), filepath.Join(t.TempDir(), "eth0.steer")
		c.change(d)
		was := d.state()
		s, err := Steer(d, path, eth0, 3)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		case c.err == "" && (err != nil || !strings.Contains(s.Why, c.why)):
			t.Errorf("%s: %+v, %v; want %q", c.name, s, err, c.why)
		}
		if err := Unsteer(d, path, eth0); err != nil || d.state() != was {
			t.Errorf("%s: %v, %v; want %v", c.name, err, d.state(), was)
		}
	}
	path := filepath.Join(t.TempDir(), "eth0.steer")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Unsteer(newFake(), path, eth0); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("a file that nobody wrote: %v", err)
	}
}
