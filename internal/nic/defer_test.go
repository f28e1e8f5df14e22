// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// queuesOf is a NIC's: which instance polls each queue, and what each has. It fails
// once so many calls were made.
type queuesOf struct {
	ids   []uint32
	has   map[uint32]Deferral
	left  int // calls that change something; negative: no end
	looks int // as left, of calls that look
	down  bool
	takes bool // what is set, and does not have it
	index int  // of the interface; 0 for any
}

func newQueues() *queuesOf {
	return &queuesOf{ids: []uint32{11, 12, 12, 13}, has: map[uint32]Deferral{11: {}, 12: {1, 7}, 13: {}}, left: -1, looks: -1}
}

func spend(n *int) error {
	if *n == 0 {
		return unix.EIO
	}
	*n--
	return nil
}

func (q *queuesOf) Of(ifindex, queue int) (uint32, error) {
	switch { // as Linux has it
	case q.index != 0 && ifindex != q.index:
		return 0, unix.ENODEV
	case q.down:
		return 0, unix.ENOENT
	case queue >= len(q.ids):
		return 0, unix.EINVAL
	}
	return q.ids[queue], nil
}

func (q *queuesOf) Deferral(id uint32) (Deferral, error) { return q.has[id], spend(&q.looks) }

func (q *queuesOf) Defer(id uint32, d Deferral) error {
	if err := spend(&q.left); err != nil {
		return err
	}
	if !q.takes {
		q.has[id] = d
	}
	return nil
}

// Interrupts are held back on the queues that are meant, once for those that share an
// instance, and everything is as before in the end, whoever ends it.
func TestDefer(t *testing.T) {
	i := &Interface{Name: "x", Index: 5, MAC: "02:00:00:00:00:05"}
	want := map[uint32]Deferral{11: {2, 50_000}, 12: {2, 50_000}, 13: {}}
	q, path := newQueues(), filepath.Join(t.TempDir(), "new", "x.napi")
	before := maps.Clone(q.has)
	d, err := Defer(q, path, i, 3, BusyDeferral)
	if err != nil || !maps.Equal(q.has, want) {
		t.Fatalf("%v, %v", q.has, err)
	}
	if err := d.Undo(i); err != nil || !maps.Equal(q.has, before) {
		t.Errorf("undone: %v, %v", q.has, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file: %v", err)
	}
	for range 2 { // killed, and twice
		if _, err := Defer(q, path, i, 3, BusyDeferral); err != nil || !maps.Equal(q.has, want) {
			t.Fatalf("%v, %v", q.has, err)
		}
	}
	i.MAC = "02:00:00:00:00:06" // which anybody may change meanwhile
	if err := Undefer(q, path, i); err != nil || !maps.Equal(q.has, before) {
		t.Errorf("under another address: %v, %v", q.has, err)
	}
	if _, err := Defer(q, path, i, 3, BusyDeferral); err != nil {
		t.Fatal(err)
	}
	q.ids[0], q.has[14], q.has[12] = 14, Deferral{9, 9}, Deferral{3, 3} // made anew, and changed by somebody
	delete(q.has, 11)
	if err := Undefer(q, path, i); err != nil || q.has[14] != (Deferral{9, 9}) || q.has[12] != (Deferral{3, 3}) {
		t.Errorf("what is another's: %v, %v", q.has, err)
	}
}

// An interface is known by more than its name, and by whichever file of the folder: what
// a killed process has held back comes back after it was renamed, be it that another one
// has its name now, and that one, and the files of others, are left alone.
func TestUndeferRenamed(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{})
	testnet.IP(t, p.A, "link add other0 type veth peer name other1")
	err := p.A.Do(func() error {
		renamed, err := Inspect(p.A.IfName)
		other, err2 := Inspect("other0")
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		for _, c := range []struct {
			what, path string
			i          *Interface
			undone     bool
		}{
			{"another name", "new.napi", &renamed, true},
			{"another one has the name", "old.napi", &other, true},
			{"there is none of the name", "old.napi", &Interface{Name: "old"}, true},
			{"the file of another interface beside", "new.napi", &other, false},
		} {
			q, dir := newQueues(), t.TempDir()
			before := maps.Clone(q.has)
			if _, err := Defer(q, filepath.Join(dir, "old.napi"), &renamed, 3, BusyDeferral); err != nil {
				return err
			}
			q.index = renamed.Index
			err := Undefer(q, filepath.Join(dir, c.path), c.i)
			if left := len(files(t, dir)); err != nil || maps.Equal(q.has, before) != c.undone || (left == 0) != c.undone {
				t.Errorf("%s: %v, %v, %d files left", c.what, q.has, err, left)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// While an interface is down nobody can let its interrupts in, and its queues keep what
// they have: so the file stays for the next process.
func TestUndeferWhenDown(t *testing.T) {
	i := &Interface{Name: "x", Index: 5}
	q, path := newQueues(), filepath.Join(t.TempDir(), "x.napi")
	before := maps.Clone(q.has)
	d, err := Defer(q, path, i, 3, BusyDeferral)
	if err != nil {
		t.Fatal(err)
	}
	q.down = true
	if err := d.Undo(i); err == nil || !strings.Contains(err.Error(), "still held back: the interface is down") {
		t.Errorf("down: %v", err)
	}
	q.down, q.ids = false, q.ids[:1] // and the others are gone
	if err := Undefer(q, path, i); err != nil || q.has[11] != before[11] {
		t.Errorf("up again: %v, %v", q.has, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file: %v", err)
	}
}

// Whatever fails, and wherever a process is killed, the next one puts everything back.
func TestDeferFails(t *testing.T) {
	i := &Interface{Name: "x", Index: 5, MAC: "02:00:00:00:00:05"}
	for _, of := range []func(*queuesOf) *int{func(q *queuesOf) *int { return &q.left }, func(q *queuesOf) *int { return &q.looks }} {
		for n := range 7 {
			q, path := newQueues(), filepath.Join(t.TempDir(), "x.napi")
			before := maps.Clone(q.has)
			left := of(q)
			*left = n
			_, err := Defer(q, path, i, 4, BusyDeferral)
			if (err == nil) == errors.Is(err, unix.EIO) || n < 3 && err == nil {
				t.Fatalf("%d: %v", n, err)
			}
			*left = -1
			if err := Undefer(q, path, i); err != nil || !maps.Equal(q.has, before) {
				t.Errorf("after %d steps, undone: %v, %v", n, q.has, err)
			}
		}
	}
	q, path := newQueues(), filepath.Join(t.TempDir(), "x.napi")
	q.takes = true
	if _, err := Defer(q, path, i, 4, BusyDeferral); err == nil || strings.Contains(err.Error(), "%!") ||
		!strings.Contains(err.Error(), "took defer_hard_irqs 2 and gro_flush_timeout 50000, and has") {
		t.Errorf("a driver that does not do what it is told: %v", err)
	}
	q.takes = false
	if _, err := Defer(q, path, i, 5, BusyDeferral); !errors.Is(err, unix.EINVAL) || len(q.has) != 3 || q.has[11] != (Deferral{}) {
		t.Errorf("a queue that is not there: %v, %v", q.has, err)
	}
	for what, c := range map[string]struct {
		text string
		say  string
	}{
		"another interface": {`{"nic":{"index":6},"set":{"defer_hard_irqs":1,"gro_flush_timeout":7},"was":[{"queue":1}]}`, ""},
		"no file of ours":   {"{", "remove the file " + path},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Undefer(q, path, i)
		if (err != nil) != (c.say != "") || err != nil && !strings.Contains(err.Error(), c.say) || q.has[12] != (Deferral{1, 7}) {
			t.Errorf("%s: %v, %v", what, err, q.has)
		}
	}
}

// The file is written through nobody's link, and one that others could have written is
// not believed.
func TestDeferralsOfOthers(t *testing.T) {
	i := &Interface{Name: "x", Index: 5}
	q, path := newQueues(), filepath.Join(t.TempDir(), "x.napi")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("v"), 0o600), os.Symlink(victim, path+".new")); err != nil {
		t.Fatal(err)
	}
	if _, err := Defer(q, path, i, 3, BusyDeferral); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(victim); string(text) != "v" {
		t.Errorf("the target of a link: %q, %v", text, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Undefer(q, path, i); !errors.Is(err, errNotOurs) || q.has[11] != BusyDeferral {
		t.Errorf("%v, %v", q.has, err)
	}
}

// The kernel has the settings of each NAPI. A veth has NAPIs with GRO, and tells of no
// queue which it has.
func TestKernelNAPIs(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{})
	if kernel.Before(kernel.NAPISettings) {
		t.Skipf("it takes Linux %v", kernel.NAPISettings)
	}
	err := p.A.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		const setGRO = 0x2c // ETHTOOL_SGRO
		if err := ethtool(fd, p.A.IfName, words(setGRO, 1)); err != nil {
			return err
		}
		if _, err := KernelNAPIs.Of(p.A.IfIndex, 0); !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("a veth tells its NAPI: %v", err)
		}
		ids, err := napisOf(p.A.IfIndex)
		for _, id := range ids {
			was, err := KernelNAPIs.Deferral(id)
			if err != nil || was != (Deferral{}) {
				t.Errorf("NAPI %d has %+v, %v", id, was, err)
			}
			for _, d := range []Deferral{BusyDeferral, {}} {
				if err := KernelNAPIs.Defer(id, d); err != nil {
					t.Errorf("NAPI %d: %v", id, err)
				}
				if now, err := KernelNAPIs.Deferral(id); err != nil || now != d {
					t.Errorf("NAPI %d has %+v, %v; want %+v", id, now, err, d)
				}
			}
		}
		if len(ids) == 0 {
			t.Errorf("no NAPIs: %v", err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// napisOf lists the ids of an interface's NAPIs.
func napisOf(ifindex int) (ids []uint32, err error) {
	family, version, err := familyOf("netdev")
	if err != nil {
		return nil, err
	}
	msgs, err := execute(family, unix.NLM_F_DUMP, genlHeader{netdevNAPIGet, version}, []nl.NetlinkRequestData{word(1, ifindex)})
	for _, m := range msgs {
		if a, err := attributes(m[nl.SizeofGenlmsg:]); err == nil {
			ids = append(ids, number(a, napiID))
		}
	}
	return ids, err
}
