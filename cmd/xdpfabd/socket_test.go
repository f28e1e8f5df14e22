// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Each socket has permissions and rules of its own, and refusals name the rule.
func TestSockets(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	dir := t.TempDir()
	open, shut := filepath.Join(dir, "open"), filepath.Join(dir, "shut")
	cfg.Sockets = []SocketConfig{{Path: open, Mode: 0o666}, {Path: shut, Mode: 0o600}}
	cfg.Guests = []GuestConfig{{Socket: shut, Deny: true, Serve: "*"}, {Socket: open, Serve: "box-*"}}
	p := servePipe(t, cfg)
	receive(t, conn)
	ctx := limited(t)
	attach := func(path string) (*xdpfab.Domain, error) {
		return xdpfab.Open(ctx, "pipe", xdpfab.DomainAttr{Control: path, Attach: fi.AttachAlways})
	}
	for path, refused := range map[string]bool{cfg.Control: false, open: true} {
		g, err := attach(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.NewRegion("mine", 4096); errors.Is(err, xdpfab.ErrDenied) != refused || refused && !strings.Contains(err.Error(), "rule guest[1] (allow:socket="+open+",serve=box-*)") {
			t.Errorf("%s: %v", path, err)
		}
		if err := g.CloseAll(); err != nil {
			t.Error(err)
		}
	}
	if _, err := attach(shut); !errors.Is(err, xdpfab.ErrDenied) || !strings.Contains(err.Error(), "rule guest[0] (deny:socket="+shut+")") {
		t.Errorf("%v", err)
	}
	for path, mode := range map[string]fs.FileMode{open: 0o666, shut: 0o600} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want %o", path, i, err, mode)
		}
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	for _, path := range []string{open, shut} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left behind: %v", path, err)
		}
	}
}

// A daemon that cannot have one of its sockets has none.
func TestSocketTaken(t *testing.T) {
	cfg := testConfig(t)
	taken := filepath.Join(t.TempDir(), "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Sockets = []SocketConfig{{Path: taken}}
	p := servePipe(t, cfg)
	select {
	case err := <-p.done:
		if err == nil || !strings.Contains(err.Error(), "socket[0]: ") || !strings.Contains(err.Error(), "is no socket") {
			t.Errorf("%v", err)
		}
	case <-limited(t).Done():
		t.Fatal("the daemon serves")
	}
	if _, err := control.Dial(cfg.Control); !errors.Is(err, control.ErrNoDaemon) {
		t.Errorf("the usual socket: %v", err)
	}
}

func TestSocketConfiguration(t *testing.T) {
	c, code, msg := load(t, "--interface=e", "--socket", "/run/a.sock:mode=0600,group=0", "--guest", "allow:socket=/run/a.sock")
	if code != exitOK || len(c.Sockets) != 1 || c.Sockets[0] != (SocketConfig{"/run/a.sock", "0", 0o600}) || c.Guests[0].Socket != "/run/a.sock" {
		t.Errorf("%d, %s: %+v", code, msg, c.Sockets)
	}
	long := "/" + strings.Repeat("x", control.MaxPath)
	for want, args := range map[string][]string{
		"want a path":             {"--socket", ":mode=0600"},
		"want mode=… or group=…":  {"--socket", "/a:path=/b"},
		"octal notation":          {"--socket", "/a:mode=rw"},
		"another control socket":  {"--socket", "/a", "--socket", "/a"},
		"path: path of 108 bytes": {"--socket", long},
		"--guest deny:socket=/b: socket: \"/b\": want the path of one of the daemon's sockets: /run/xdpfabd/e.sock, /a": {"--socket", "/a", "--guest", "deny:socket=/b"},
	} {
		if _, code, msg := load(t, append(args, "--interface=e")...); code != exitUsage || !strings.Contains(msg, want) {
			t.Errorf("%s: %d, %s; want %s", args, code, msg, want)
		}
	}
}
