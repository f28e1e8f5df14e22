// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
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
