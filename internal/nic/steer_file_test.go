// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// killedAfterSteering leaves a NIC steered, and its file.
func killedAfterSteering(t *testing.T, path string, n *Steered) (d *fakeNIC, was string) {
	t.Helper()
	d = newFake()
	was = d.state()
	if _, _, err := Steer(d, path, n); err != nil || d.state() == was {
		t.Fatal(err)
	}
	return d, was
}

// noted checks that there is one note, which says something.
func noted(t *testing.T, notes []string, err error, want string) {
	t.Helper()
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], want) {
		t.Errorf("%q, %v; want %q", notes, err, want)
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// A NIC that has another name, or another address, by now is the same: what it had before
// the first steering comes back, by whichever file.
func TestSteerRenamed(t *testing.T) {
	for _, again := range []bool{false, true} {
		dir := t.TempDir()
		d, was := killedAfterSteering(t, filepath.Join(dir, "eth0.steer"), eth0(3))
		n, path := eth0(2), filepath.Join(dir, "lan.steer")
		n.Name, n.MAC = "lan", "02:aa:aa:aa:aa:aa"
		if again { // by a daemon that steers, and ends in order
			s, notes, err := Steer(d, path, n)
			if noted(t, notes, err, "lan was steered as eth0"); err != nil || slices.Max(d.table) != 1 {
				t.Fatalf("%+v, %v", s, d.state())
			}
			unsteer(t, d, path, n)
		} else {
			notes, err := Unsteer(d, path, n)
			noted(t, notes, err, "lan was steered as eth0")
		}
		if left := files(t, dir); d.state() != was || len(left) > 0 {
			t.Errorf("%v, left over %q; want %v", d.state(), left, was)
		}
	}
}

// Another NIC that has the name now is not touched by an old file. The one that was
// steered gets its own settings back if it is still here.
func TestSteerReplaced(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Identity)
		here   bool
		note   string
	}{
		{"another in its slot", func(id *Identity) { id.MAC, id.Index = "02:00:00:00:00:02", 9 }, false, "not here any more"},
		{"another driver", func(id *Identity) { id.Driver = "other" }, false, "not here any more"},
		{"a virtual one", func(id *Identity) { id.Bus, id.MAC, id.Index = "", "", 9 }, false, "not here any more"},
		{"the names were exchanged", func(id *Identity) { id.Bus, id.MAC = "0000:02:00.0", "02:00:00:00:00:02" }, true,
			"eth1 was steered as eth0"},
		{"a boot", func(id *Identity) { id.Boot = "tomorrow" }, false, "before this boot"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "eth0.steer")
		old, was := killedAfterSteering(t, path, eth0(3))
		steered := old.state()
		n, d := eth0(3), newFake()
		c.change(&n.Identity)
		d.table, d.rules = slices.Clone(old.table), map[uint32]Rule{15: old.rules[15]} // by chance
		own := d.state()
		n.find = func(id Identity) (*Steered, Classifier, func(), error) {
			if !c.here {
				return nil, nil, nil, fs.ErrNotExist
			}
			other := eth0(3)
			other.Name = "eth1"
			if !other.Identity.is(&id) {
				t.Errorf("%s: looked for %+v", c.name, id)
			}
			return other, old, func() {}, nil
		}
		notes, err := Unsteer(d, path, n)
		if err != nil || len(notes) == 0 || !strings.Contains(notes[0], c.note) {
			t.Errorf("%s: %q, %v; want %q", c.name, notes, err, c.note)
		}
		if d.state() != own {
			t.Errorf("%s: a NIC that nobody steered has %v, had %v", c.name, d.state(), own)
		}
		if want := map[bool]string{true: was, false: steered}[c.here]; old.state() != want {
			t.Errorf("%s: the NIC that was steered has %v, want %v", c.name, old.state(), want)
		}
		if left := files(t, dir); slices.Contains(left, "eth0.steer") {
			t.Errorf("%s: left over %q", c.name, left)
		}
	}
}

// A number of queues that has changed since: a table that the driver made anew is left;
// one that named a queue which is gone by now becomes the driver's own.
func TestSteerOtherQueues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eth0.steer")
	d, _ := killedAfterSteering(t, path, eth0(3))
	for i := range d.table {
		d.table[i] = uint32(i % 4)
	}
	want, n := slices.Clone(d.table), eth0(3)
	n.RXQueues = 4
	notes, err := Unsteer(d, path, n)
	if noted(t, notes, err, "it is left"); !slices.Equal(d.table, want) || len(d.rules) != 2 {
		t.Errorf("%v", d.state())
	}
	d = newFake()
	d.table[3] = 7 // the administrator's
	if _, _, err := Steer(d, path, eth0(3)); err != nil {
		t.Fatal(err)
	}
	for i := range d.own {
		d.own[i] = uint32(i % 4)
	}
	notes, err = Unsteer(d, path, n)
	if noted(t, notes, err, "had queue 7, and there are 4"); !slices.Equal(d.table, d.own) {
		t.Errorf("%v", d.state())
	}
}

// An error of the driver is not taken for a file that is not there: it is told, and the
// file stays for the next one.
func TestUnsteerFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eth0.steer")
	d, was := killedAfterSteering(t, path, eth0(3))
	d.noRules = unix.ENOENT
	if notes, err := Unsteer(d, path, eth0(3)); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%q, %v", notes, err)
	}
	d.noRules = nil
	if unsteer(t, d, path, eth0(3)); d.state() != was {
		t.Errorf("%v, want %v", d.state(), was)
	}
}

// Two daemons, of two NICs, have a file each.
func TestSteerTwo(t *testing.T) {
	dir := t.TempDir()
	second := func() *Steered {
		n := eth0(2)
		n.Name, n.Identity.Bus, n.Identity.MAC, n.Identity.Index = "eth1", "0000:01:00.1", "02:00:00:00:00:02", 5
		return n
	}
	a, wasA := killedAfterSteering(t, filepath.Join(dir, "eth0.steer"), eth0(3))
	b, wasB := killedAfterSteering(t, filepath.Join(dir, "eth1.steer"), second())
	steered := b.state()
	if unsteer(t, a, filepath.Join(dir, "eth0.steer"), eth0(3)); a.state() != wasA || b.state() != steered {
		t.Errorf("%v, %v", a.state(), b.state())
	}
	if unsteer(t, b, filepath.Join(dir, "eth1.steer"), second()); b.state() != wasB {
		t.Errorf("%v", b.state())
	}
}

// A file that is damaged, of another release, or that somebody else could have written
// changes nothing: it is refused, with what to do.
func TestSteerFileRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "eth0.steer")
	d, _ := killedAfterSteering(t, path, eth0(3))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		steered, changes := d.state(), d.changes
		_, err := Unsteer(d, path, eth0(3))
		_, _, again := Steer(d, path, eth0(2))
		for _, err := range []error{err, again} {
			if !errors.Is(err, ErrSteerFile) || !strings.Contains(err.Error(), "remove the file when") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if d.state() != steered || d.changes != changes {
			t.Errorf("%s: %v, was %v", what, d.state(), steered)
		}
	}
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		refused("cut short")
	}
	text := string(whole)
	for _, bad := range []string{
		text + "{}", "null", "[]", strings.Replace(text, `"version":2`, `"version":3`, 1),
		strings.Replace(text, `"set":[0,`, `"set":[`, 1), strings.Replace(text, `"queues":3`, `"queues":0`, 1),
		`{"interface":"eth0","index":4,"mac":"02:00:00:00:00:01","set":[0,0]}`, // of version 1
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(bad)
	}
	write := func(mode fs.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, whole, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(0o620)
	refused("others can write to it")
	if write(0o600); os.Geteuid() == 0 {
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		refused("another user's")
	}
	if err := errors.Join(os.Rename(path, path+".other"), os.Symlink(path+".other", path)); err != nil {
		t.Fatal(err)
	}
	refused("a link")
}

// Before the file is written nothing changes, and what half a write has left is no file.
func TestSteerFileFirst(t *testing.T) {
	d := newFake()
	was := d.state()
	_, _, err := Steer(d, filepath.Join(t.TempDir(), "missing", "eth0.steer"), eth0(3))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "before any change") || d.state() != was {
		t.Errorf("%v, %v", err, d.state())
	}
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "eth0.steer"), filepath.Join(dir, "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, path+".new")); err != nil {
		t.Fatal(err)
	}
	d, was = killedAfterSteering(t, path, eth0(3))
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("a link led elsewhere: %q, %v", text, err)
	}
	if err := os.WriteFile(path+".new", []byte(`{"versi`), 0o600); err != nil {
		t.Fatal(err)
	}
	if unsteer(t, d, path, eth0(3)); d.state() != was {
		t.Errorf("%v", d.state())
	}
}

// The identities of the interfaces here are told from each other.
func TestIdentity(t *testing.T) {
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	var ids []Identity
	for _, i := range all {
		id := IdentityOf(&i)
		if id.Boot == "" || !id.is(&id) || slices.ContainsFunc(ids, func(o Identity) bool { return o.is(&id) }) {
			t.Errorf("%s: %+v", i.Name, id)
		}
		ids = append(ids, id)
		n, _, done, err := find(id)
		if err != nil || n.Name != i.Name {
			t.Errorf("%s is found as %+v, %v", i.Name, n, err)
			continue
		}
		done()
	}
	ids[0].Driver = "none such"
	if _, _, _, err := find(ids[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A NIC is the same under another name, whatever name its user knows.
func TestIdentityIsOfNoName(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{})
	err := p.A.Do(func() error {
		tap := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tap0"}, Mode: netlink.TUNTAP_MODE_TAP}
		if err := netlink.LinkAdd(tap); err != nil {
			t.Skipf("no tap, whose driver tells of a bus: %v", err)
		}
		l, err := netlink.LinkByName("tap0")
		if err != nil {
			return err
		}
		i := Interface{Name: "tap0", Index: l.Attrs().Index, Driver: "tun"}
		was := IdentityOf(&i)
		if err := netlink.LinkSetName(l, "tap1"); err != nil {
			return err
		}
		if now := IdentityOf(&i); was.Bus == "" || now != was {
			t.Errorf("%+v, and renamed %+v", was, now)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
