// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
)

func TestStat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	var ops uint64
	source := func() (control.Status, error) {
		ops += 1000
		return control.Status{
			Version: "1", PID: 7, UptimeSeconds: float64(ops) / 1000, Address: peerAddr,
			Regions:  []control.Region{{Name: "r", Key: "0x01", Size: 8, Access: []string{"read"}}},
			Guests:   []control.Guest{{AttachedGuest: host.AttachedGuest{GuestInfo: host.GuestInfo{PID: 4711, UID: 77, Endpoints: 3, Serving: 2, Taken: 12345}}, User: "alice"}},
			Counters: map[string]uint64{"ops_executed": ops, "hellos": 0},
		}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	l, err := control.Listen(t.Context(), path, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- control.ServeListener(ctx, l, control.Service{Source: source}) }()
	n := newNode(t)
	r := n.run("", "stat", "--control", path)
	if r.code != 0 || !strings.Contains(r.out, "ops_executed  1000") || strings.Contains(r.out, "hellos") || !strings.Contains(r.out, peerAddr) ||
		!strings.Contains(strings.Join(strings.Fields(r.out), " "), "4711 alice 3 2 0 0 0 12345 0") {
		t.Errorf("%+v", r)
	}
	if r := n.run("", "stat", "--control", path, "--all"); !strings.Contains(r.out, "hellos") {
		t.Errorf("%+v", r)
	}
	r = n.run("", "stat", "--control", path, "--watch", "1ms", "--count", "2", "--json")
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 0 || len(lines) != 2 || !strings.Contains(lines[1], `"rates":{"hellos":0,"ops_executed":1000}`) {
		t.Errorf("%+v", r)
	}
	r = n.run("", "stat", "--control", path, "--watch", "1ms", "--count", "3")
	if text := strings.Join(strings.Fields(r.out), " "); r.code != 0 || strings.Count(text, "COUNTER TOTAL") != 1 || strings.Count(text, "ops_executed") != 3 ||
		strings.Count(text, " 1000/s") != 2 || strings.Contains(text, "hellos") {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	a := &app{out: &out, err: &out, rows: func() int { return 12 }}
	code := a.run(ctx, []string{"stat", "--control", path, "--watch", "1ms", "--count", "2"})
	if pages := strings.Split(out.String(), "\x1b[H"); code != 0 || len(pages) != 3 || !strings.Contains(pages[1], "every 1ms; Ctrl-C ends\x1b[K\n") ||
		strings.Count(pages[2], "\n") != 11 || !strings.Contains(pages[2], "lines more") || !strings.HasSuffix(pages[2], "\x1b[?25h") {
		t.Errorf("%d, %q", code, out.String())
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// The client goes through a daemon of another network namespace only if the user named
// its socket, and not if the user named an interface.
func TestDaemonOfAnotherNamespace(t *testing.T) {
	for _, c := range []struct {
		line, env string
		named     bool
		path      string
	}{
		{"--control /d/x.sock", "", true, "/d/x.sock"},
		{"", "XDPFAB_CONTROL=/d/y.sock", true, "/d/y.sock"},
		{"-i eth7", "XDPFAB_CONTROL=/d/y.sock", false, control.DefaultPath("eth7")},
		{"", "XDPFAB_INTERFACE=eth8", false, control.DefaultPath("eth8")},
	} {
		name, value, _ := strings.Cut(c.env, "=")
		a := &app{env: func(asked string) string { return ifThen(asked == name, value) }}
		var f daemonFlags
		command := &cobra.Command{}
		f.register(command)
		if err := command.ParseFlags(strings.Fields(c.line)); err != nil {
			t.Fatal(err)
		}
		if named, _, err := f.find(a, command); err != nil || named != c.named || f.path != c.path {
			t.Errorf("%s %s: %v, %s, %v", c.env, c.line, named, f.path, err)
		}
	}
	for ns, refused := range map[uint64]bool{0: false, control.Namespace(): false, control.Namespace() + 1: true} {
		path := filepath.Join(t.TempDir(), "x.sock")
		ctx, cancel := context.WithCancel(context.Background())
		l, err := control.Listen(ctx, path, control.Access{})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error)
		go func() {
			served <- control.ServeListener(ctx, l, control.Service{Source: func() (control.Status, error) { return control.Status{PID: 4711, NetNS: ns}, nil }})
		}()
		d, err := control.Dial(path)
		if err != nil {
			t.Fatal(err)
		}
		err = nearby(ctx, d, &daemonFlags{path: path})
		if (err != nil) != refused || refused && (exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "process 4711") || !strings.Contains(err.Error(), "start one here, as in `xdpfabd -i ") || !strings.Contains(err.Error(), "--control "+path)) {
			t.Errorf("namespace %d: %v", ns, err)
		}
		cancel()
		if err := errors.Join(d.Close(), <-served); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyDaemon(t *testing.T) {
	dir := t.TempDir()
	if _, err := onlyDaemon(dir); !errors.Is(err, control.ErrNoDaemon) {
		t.Error(err)
	}
	for i, name := range []string{"a.sock", "b.sock"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		path, err := onlyDaemon(dir)
		if i == 0 && (err != nil || filepath.Base(path) != name) || i == 1 && exitCode(err) != exitUsage {
			t.Errorf("%d sockets: %q, %v", i+1, path, err)
		}
	}
	dir = t.TempDir()
	for _, name := range []string{"dead.sock", "live.sock"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if name == "dead.sock" { // as a daemon that was killed leaves it
			l.SetUnlinkOnClose(false)
			l.Close()
		}
	}
	if path, err := onlyDaemon(dir); err != nil || filepath.Base(path) != "live.sock" {
		t.Errorf("one of two is dead: %q, %v", path, err)
	}
	if err := os.Rename(filepath.Join(dir, "dead.sock"), filepath.Join(dir, "live.sock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "live.sock"), filepath.Join(dir, "other.sock")); err != nil {
		t.Fatal(err)
	}
	_, err := onlyDaemon(dir)
	if !errors.Is(err, control.ErrNoDaemon) || !strings.Contains(err.Error(), "the daemons that made the 2 sockets in "+dir+" have ended: start xdpfabd") {
		t.Errorf("both are dead: %v", err)
	}
}
