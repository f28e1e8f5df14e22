// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// refused waits for the end of a daemon that does not start, and for what it says.
func (p *process) refused(t *testing.T, want ...string) {
	t.Helper()
	code := p.code(t)
	said := strings.Join(strings.Fields(p.out.String()), " ") // without the folds of long lines
	for _, text := range want {
		if code != exitInterface || !strings.Contains(said, text) {
			t.Errorf("%d: %s; want %s", code, said, text)
		}
	}
}

// A daemon whose control socket was removed is named by its process, also if it has
// resident regions, whose folder a second daemon wants first.
func TestRefusedNamesTheProcess(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	pin, path := filepath.Join(testnet.BPFFS(t), "node"), socketPath(t)
	p := launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident")
	p.ready(t)
	launch(t, net.B, socketPath(t), nil, "--pin", pin, "--region", "hot=4KiB:resident").
		refused(t, "has the folder; stop it, or name another folder")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	serves := fmt.Sprintf("process %d serves %s already, and its control socket, %s, was removed", p.cmd.Process.Pid,
		net.B.IfName, path)
	launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident").refused(t, serves)
	launch(t, net.B, path, nil, "--transport", "udp", "--region", "r=4KiB").refused(t, serves)
	launch(t, net.B, path, nil, "--region", "r=4KiB").refused(t, serves)
}

// A user without privileges who lets the daemon choose UDP sockets is told why a resident
// region cannot be had.
func TestResidentWithoutPrivileges(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	folder, err := os.MkdirTemp("", "xdpfab")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	p := launch(t, net.B, filepath.Join(folder, "c.sock"), []uintptr{}, "--transport", "auto", "--region", "hot=4KiB:resident")
	p.refused(t, `region "hot" is resident, which takes AF_XDP, and --transport auto has come to UDP sockets, because missing CAP_`)
}

// A guest whose next daemon refuses it says so, and the daemon does not say it at each
// attempt.
func TestGuestTurnedAway(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	first := servePipe(t, cfg)
	receive(t, conn)
	said := &lockedBuffer{}
	d, err := xdpfab.Open(limited(t), "pipe", xdpfab.DomainAttr{Control: cfg.Control, Attach: fi.AttachAlways,
		Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	if err := first.end(t); err != nil {
		t.Fatal(err)
	}
	cfg.Guests = []GuestConfig{{Deny: true}}
	cfg.Regions = nil
	next := servePipe(t, cfg)
	testnet.Eventually(t, "two refusals", func() bool { return statusOf(t, cfg).Counters["guest_refused_denied"] > 1 })
	if text := said.String(); strings.Count(text, "another daemon does not take in") != 1 || !strings.Contains(text, "rule guest[0]") {
		t.Errorf("the guest said: %s", text)
	}
	if n := strings.Count(next.log.String(), "guest refused"); n != 1 {
		t.Errorf("%d lines, want 1: %s", n, next.log)
	}
	if err := next.end(t); err != nil {
		t.Error(err)
	}
}

// Refusals of one program for one cause are told of at growing distances, and few are
// remembered.
func TestRefusalsAreToldOnce(t *testing.T) {
	var g guestRefusals
	var told []uint64
	for range 1000 {
		if n, tell := g.again(1, errors.New("a")); tell {
			told = append(told, n)
		}
	}
	if !slices.Equal(told, []uint64{1, 10, 100, 1000}) {
		t.Errorf("told at %d", told)
	}
	for pid := range 2 * mostTold {
		if n, tell := g.again(pid, errors.New("b")); n != 1 || !tell || len(g.told) > mostTold {
			t.Fatalf("process %d: %d, %v, %d are remembered", pid, n, tell, len(g.told))
		}
	}
}
