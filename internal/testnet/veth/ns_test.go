// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSweepTakesOnlyTheDead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	// The pid is above the kernel's highest, 2^22, and no other run of this test
	// has it.
	dead := fmt.Sprintf("%s%d-1-a", prefix, 1<<23+os.Getpid())
	h, err := create(dead)
	for range 100 {
		if err == nil {
			break
		}
		h, err = create(dead) // another process swept it while it was being made
	}
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	p, err := New(Options{}) // sweeps first
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sweep()
	if _, err := os.Stat("/run/netns/" + dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("namespace of a dead process still there: %v", err)
	}
	for _, s := range p.sides() {
		if _, err := os.Stat("/run/netns/" + s.Name); err != nil {
			t.Errorf("namespace of this process: %v", err)
		}
	}
}

func TestCloseTwice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	p, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := p.A.Do(func() error { return nil }); err == nil {
		t.Error("Do works in a closed pair")
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{Queues: -1}, {MTU: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("New(%+v) succeeded", o)
		}
	}
}

// A name that another process has unmounted or removed meanwhile is no error.
func TestCloseWithoutName(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	p, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := "/run/netns/"+p.A.Name, "/run/netns/"+p.B.Name
	if err := errors.Join(unix.Unmount(a, unix.MNT_DETACH), unix.Unmount(b, unix.MNT_DETACH), os.Remove(b)); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{a, b} {
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// A name on which the mount lies twice is removed too: the first `ip netns` of a machine
// makes the folder a mount of its own, with what lies in it at that moment.
func TestCloseMountedTwice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	p, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := "/run/netns/" + p.A.Name
	if err := errors.Join(unix.Mount(a, a, "", unix.MS_BIND, ""), p.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(a); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", a, err)
	}
}
