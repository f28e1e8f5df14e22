// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
)

const alice, bob = 4_000_000_001, 4_000_000_002

// connection returns one end of a connection, and the other.
func connection(t *testing.T) (*net.UnixConn, *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "x"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}

// No user keeps the others out of a rule that is about several.
func TestPlacesOfUsers(t *testing.T) {
	r, err := rulesOf(t, "allow:group=7,guests=8").admit(control.Program{UID: alice, GID: 7}, "")
	if err != nil {
		t.Fatal(err)
	}
	var all []*place
	enter := func(uid uint32, want int) {
		t.Helper()
		for range want {
			x, err := r.places.try(uid)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
	}
	refused := func(uid uint32, want string) {
		t.Helper()
		if _, err := r.places.try(uid); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rule guest[0]") {
			t.Errorf("user %d: %v; want an error with %q", uid, err, want)
		}
	}
	enter(alice, 4)
	refused(alice, "user 4000000001 has 4 programs attached, and 4 places are left")
	enter(bob, 2)
	refused(bob, "user 4000000002 has 2 programs attached, and 2 places are left")
	enter(0, 1)
	enter(uint32(os.Geteuid()), 1)
	refused(0, "8 programs are attached")
	for _, x := range all {
		x.leave()
	}
	if r, err = rulesOf(t, "allow:user=4000000001,guests=8").admit(control.Program{UID: alice}, ""); err != nil {
		t.Fatal(err)
	}
	enter(alice, 8)
	refused(alice, "8 programs are attached")
	if r, err = rulesOf(t, "allow:user=4000000001,guests=1").admit(control.Program{UID: alice}, ""); err != nil {
		t.Fatal(err)
	}
	enter(alice, 1)
	refused(alice, "1 program is attached")
}

// Where there is no place, programs that have connected and not attached give way, the
// one that came first before others. Those that attached stay.
func TestSilentProgramsGiveWay(t *testing.T) {
	defer func(was time.Duration) { silence = was }(silence)
	silence = time.Hour
	r, err := rulesOf(t, "allow:group=7,guests=3").admit(control.Program{UID: alice, GID: 7}, "")
	if err != nil {
		t.Fatal(err)
	}
	var here, there [3]*net.UnixConn
	var has [3]*place
	for i := range has {
		if has[i], err = r.places.try(0); err != nil {
			t.Fatal(err)
		}
		here[i], there[i] = connection(t)
		has[i].talks(here[i])
	}
	has[0].settle()
	closed := func(i int) bool {
		_ = there[i].SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := there[i].Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	for i, want := range [][3]bool{{}, {false, true}, {false, true, true}, {false, true, true}} {
		if i > 0 {
			silence = 0
		}
		if _, err := r.places.try(bob); err == nil {
			t.Fatal("a fourth of three places")
		}
		for j := range want {
			if is := closed(j); is != want[j] {
				t.Errorf("after %d programs that want a place: connection %d is closed: %t", i+1, j, is)
			}
		}
	}
	has[1].leave()
	if _, err := r.places.enter(limited(t), bob); err != nil {
		t.Error(err)
	}
}

// Programs of the former daemon for which the rules have no place are refused at once:
// all of them stand still meanwhile. It is for the domain to say so when it serves.
func TestStayDoesNotWait(t *testing.T) {
	defer func(was time.Duration) { placeWait = was }(placeWait)
	placeWait = time.Hour
	var log strings.Builder
	s := &server{rules: rulesOf(t, "allow:guests=2"), log: slog.New(slog.NewTextHandler(&log, nil))}
	var gone []func(error)
	for i := range 100 {
		here, _ := connection(t)
		_, end, err := s.stay(here)
		if (err == nil) != (i < 2) || err != nil && !strings.Contains(err.Error(), "2 programs are attached") {
			t.Fatalf("program %d: %v", i, err)
		}
		if err == nil {
			gone = append(gone, end)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log says %q, want nothing", log.String())
	}
	gone[0](errors.New("its rings are missing"))
	if n := strings.Count(log.String(), "guest evicted"); n != 1 {
		t.Errorf("the log says %q, want one guest evicted", log.String())
	}
	here, _ := connection(t)
	if _, _, err := s.stay(here); err != nil {
		t.Errorf("a program for which there is a place: %v", err)
	}
}
