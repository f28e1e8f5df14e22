// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	for _, c := range []struct{ socket, ifname, want string }{
		{"", "eth0", "start xdpfabd as this one was, with --takeover"},
		{"/run/systemd/notify", "eth0", "systemctl reload xdpfabd@eth0"},
		{"/run/systemd/notify", "br-lan", "systemctl reload xdpfabd@$(systemd-escape br-lan)"},
	} {
		t.Setenv("NOTIFY_SOCKET", c.socket)
		if got := reloadOf(c.ifname); got != c.want {
			t.Errorf("%q on %s: %q, want %q", c.socket, c.ifname, got, c.want)
		}
	}
}
