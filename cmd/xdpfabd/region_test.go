// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Regions come and go while the daemon serves: peers find a new one, and learn that one
// is gone. A mistake changes nothing.
func TestRegionsAtRunTime(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	p := servePipe(t, cfg)
	receive(t, conn)
	c, err := control.Dial(cfg.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	create := func(text string) (r control.Region, err error) {
		err = c.Call(limited(t), "create-region", control.CreateRegion{Region: text}, &r)
		return r, err
	}
	remove := func(name string) (r control.Region, err error) {
		err = c.Call(limited(t), "remove-region", control.RemoveRegion{Name: name}, &r)
		return r, err
	}
	file := filepath.Join(t.TempDir(), "late")
	if r, err := create("late=4KiB:backing=" + file); err != nil || r.Name != "late" || r.Backing != "file:"+file || r.Size != 4096 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := receive(t, conn); got != "STATUS=serving 4 regions on pipe" {
		t.Errorf("notification %q", got)
	}
	spare := filepath.Join(t.TempDir(), "spare")
	for text, want := range map[string]string{
		"late=4KiB:backing=" + spare: "is there already", "twin=4KiB:key=7,backing=" + spare: "key in use",
		"late=4KiB": "is there already", "hot=4KiB:resident": "no XDP program of its own", "x": "name=size", "x=": "size: missing",
		"dir=4KiB:backing=/": `region "dir"`, "twin=4KiB:key=7": "key in use",
	} {
		if r, err := create(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, r, err, want)
		}
	}
	if _, err := os.Stat(spare); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a region that was refused has left a file: %v", err)
	}
	if _, err := remove("none"); err == nil || !strings.Contains(err.Error(), `no region "none"`) {
		t.Errorf("a region that is not there: %v", err)
	}
	peer, err := p.client.Dial(limited(t), p.server.Node().Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](limited(t), peer, "late", 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Add(limited(t), 3); n != 3 || err != nil {
		t.Errorf("Add: %d, %v", n, err)
	}
	if r, err := remove("late"); err != nil || r.Name != "late" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := w.Add(limited(t), 3); !errors.Is(err, xdpfab.ErrNotExecuted) || !errors.Is(err, xdpfab.ErrPeerRestarted) {
		t.Errorf("on a region that is gone: %v", err)
	}
	var list []control.Region
	if err := c.Call(limited(t), "regions", nil, &list); err != nil || len(list) != 3 {
		t.Errorf("%+v, %v; want three", list, err)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

// A region's file is marked as served before a daemon that takes over can be told of the
// region: else the two might mark it in the wrong order, and warn of one another.
func TestRegionIsClaimedFirst(t *testing.T) {
	cfg := testConfig(t)
	p := servePipe(t, cfg)
	file := filepath.Join(t.TempDir(), "late")
	other, err := mr.File(file, 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(other.FD(), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	var clients [2]*control.Client
	for i := range clients {
		if clients[i], err = control.Dial(cfg.Control); err != nil {
			t.Fatal(err)
		}
		defer clients[i].Close()
	}
	served := make(chan []control.Region, 1) // at the warning
	p.log.hear(func(line string) {
		if strings.Contains(line, "another process serves this file") {
			var now []control.Region
			_ = clients[1].Call(limited(t), "regions", nil, &now)
			served <- now
		}
	})
	var made control.Region
	if err := clients[0].Call(limited(t), "create-region", control.CreateRegion{Region: "late=4KiB:backing=" + file}, &made); err != nil {
		t.Fatal(err)
	}
	if now := <-served; len(now) != len(cfg.Regions) {
		t.Errorf("served at the warning: %+v; want those of the configuration alone", now)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

// A daemon that takes over goes on with the regions that it names too, and with those
// that a command has added. While it is told which, none may change.
func TestRegionsGiven(t *testing.T) {
	a := RegionConfig{Name: "a", Size: 4096, Access: mr.RemoteRead, Backing: backingAnonymous}
	b, hot, added := a, a, a
	b.Name, hot.Name, added.Name = "b", "hot", "added"
	hot.Backing = backingResident
	larger, cold := a, a
	cold.Backing = backingResident
	larger.Size = 8192
	s := &served{list: []*region{{RegionConfig: a}, {RegionConfig: b}, {RegionConfig: hot}, {RegionConfig: added, added: true}}}
	for _, c := range []struct {
		claimed []RegionConfig
		given   []string
		refused string
	}{
		{[]RegionConfig{a, b, hot}, []string{"a", "b", "hot", "added"}, ""},
		{[]RegionConfig{hot, {Name: "new"}, b}, []string{"b", "hot", "added"}, ""},
		{[]RegionConfig{larger, b, hot}, nil, `region "a" has 4096 bytes in the daemon that serves, and 8192 bytes in the one`},
		{[]RegionConfig{a, b}, []string{"a", "b", "added"}, ""},
		{[]RegionConfig{a, hot, {Name: "cold", Backing: backingResident}}, []string{"a", "hot", "added"}, ""},
		{[]RegionConfig{cold, hot}, nil, `region "a"`},
	} {
		var claimed []legacyOf
		for i := range c.claimed {
			claimed = append(claimed, c.claimed[i].legacy())
		}
		list, err := s.given(claimed)
		var names []string
		for _, r := range list {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, c.given) || (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%+v: %v, %v; want %v, %q", c.claimed, names, err, c.given, c.refused)
		}
	}
	s.promise()
	same := func(list []*region) ([]*region, error) { return list, nil }
	if err := s.change(same); !errors.Is(err, errPromised) {
		t.Errorf("a change in a takeover: %v", err)
	}
	s.release()
	if err := s.change(same); err != nil {
		t.Errorf("a change after it: %v", err)
	}
}

// A takeover changes no key. A configuration that wants another one for a region, or one
// that another region keeps, is refused before anything has stopped.
func TestKeysFit(t *testing.T) {
	region := func(name string, keys ...uint64) (r RegionConfig) {
		if r.Name = name; len(keys) > 0 {
			r.Key = &keys[0]
		}
		return r
	}
	promised, keys := []legacyOf{{Name: "a"}, {Name: "added"}}, []uint64{5, 7}
	for _, c := range []struct {
		regions []RegionConfig
		refused string
	}{
		{[]RegionConfig{region("a"), region("new")}, ""},
		{[]RegionConfig{region("a", 5), region("added", 7), region("new", 6)}, ""},
		{[]RegionConfig{region("a", 6)}, `region "a" has key 0x5`},
		{[]RegionConfig{region("new", 7)}, `region "new" wants key 0x7, which region "added"`},
	} {
		cfg := Config{Regions: c.regions}
		if err := cfg.keysFit(promised, keys); (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%+v: %v, want %q", c.regions, err, c.refused)
		}
		if err := cfg.keysFit(promised, nil); err != nil {
			t.Errorf("of an older release: %v", err)
		}
	}
}
