// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A program that leaves connections open loses the oldest, and does not keep others out.
func TestOldestConnectionGivesWay(t *testing.T) {
	const most = 3
	path := startService(t, Service{Source: steady, most: most})
	silent := make([]net.Conn, most)
	for i := range silent {
		var err error
		if silent[i], err = net.Dial("unix", path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent[i].Close() })
	}
	var status Status
	if err := dial(t, path).Call(ask(t), "status", nil, &status); err != nil {
		t.Errorf("one more: %v", err)
	}
	if err := silent[0].SetReadDeadline(time.Now().Add(testnet.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := silent[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest: %v, want its end", err)
	}
}

// Connections of many users leave descriptors for others: the oldest of the user with the
// most gives way.
func TestLargestUserGivesWay(t *testing.T) {
	c := newCrowd(100)
	c.open = 4
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all []net.Conn
	enter := func() {
		t.Helper()
		there, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		here, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = there.Close()
			_ = here.Close()
		})
		all = append(all, here)
		c.enter(here)
	}
	for range 4 {
		enter()
	}
	own, other := uint32(os.Geteuid()), uint32(4_000_000_001) // the first one becomes another user's
	c.of[other], c.of[own], c.user[all[0]] = c.of[own][:1:1], c.of[own][1:], other
	enter()
	if _, err := all[1].Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the oldest of the largest user: %v, want its end", err)
	}
	if len(c.user) != 4 || len(c.of[other]) != 1 || len(c.of[own]) != 3 {
		t.Errorf("%d connections, %d and %d of the users; want 4, 1 and 3", len(c.user), len(c.of[other]), len(c.of[own]))
	}
}
