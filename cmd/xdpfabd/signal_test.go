// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// A signal to end that is repeated within a second is one wish; a later one is another,
// and ends the process at once. SIGHUP is none.
func TestRepeatedSignals(t *testing.T) {
	ends, exits := 0, 0
	w := wishes{log: slog.New(slog.DiscardHandler), end: func() { ends++ }, exit: func(int) { exits++ }}
	at := time.Now()
	for _, c := range []struct {
		sig         unix.Signal
		after       time.Duration
		ends, exits int
	}{
		{unix.SIGHUP, 0, 0, 0}, {unix.SIGTERM, 0, 1, 0}, {unix.SIGTERM, time.Millisecond, 1, 0},
		{unix.SIGINT, sameWish - 1, 1, 0}, {unix.SIGHUP, sameWish, 1, 0}, {unix.SIGTERM, sameWish, 1, 1},
	} {
		if w.handle(c.sig, at.Add(c.after)); ends != c.ends || exits != c.exits {
			t.Errorf("%v after %v: %d wishes and %d exits, want %d and %d", c.sig, c.after, ends, exits, c.ends, c.exits)
		}
	}
}

// A step that does not end delays the end of the daemon by a limit alone; one that ends
// in time has its own say.
func TestStepWithin(t *testing.T) {
	own := errors.New("own")
	asked, ask := context.WithCancel(t.Context())
	if err := stepWithin(asked, time.Hour, func() error { return own }); err != own {
		t.Errorf("a step that nobody interrupts: %v", err)
	}
	ask()
	if err := stepWithin(asked, time.Hour, func() error { return own }); err != own {
		t.Errorf("a step that ends: %v", err)
	}
	hangs := make(chan struct{})
	defer close(hangs)
	if err := stepWithin(asked, 0, func() error { <-hangs; return nil }); err != errAsked {
		t.Errorf("a step that hangs: %v", err)
	}
}

// SIGHUP names what has a configuration take effect where the daemon runs.
func TestReloadIsNamed(t *testing.T) {
	const systemd = "/run/systemd/notify"
	for _, c := range []struct {
		socket, ifname string
		by             udpnode.Transport
		want           string
	}{
		{"", "eth0", udpnode.XDP, "start xdpfabd as this one was, with --takeover"},
		{"", "eth0", udpnode.UDP, "stop xdpfabd, and start it again"},
		{systemd, "eth0", udpnode.XDP, "systemctl reload xdpfabd@eth0"},
		{systemd, "br-lan", udpnode.XDP, "systemctl reload xdpfabd@$(systemd-escape br-lan)"},
		{systemd, "br-lan", udpnode.UDP, "systemctl restart xdpfabd@$(systemd-escape br-lan)"},
	} {
		t.Setenv("NOTIFY_SOCKET", c.socket)
		if got := reloadOf(Config{Interface: c.ifname, Transport: c.by}); got != c.want {
			t.Errorf("%q on %s by %v: %q, want %q", c.socket, c.ifname, c.by, got, c.want)
		}
	}
}
