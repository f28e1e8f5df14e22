// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// A frame that was passed on, or found no socket, came astray; those have their place
// among all that the XDP program let through. What was counted before does not count.
func TestMeasured(t *testing.T) {
	for _, c := range []struct{ redirect, forwarded, dropped, frames, astray uint64 }{
		{0, 0, 0, 0, 0}, {1500, 0, 0, 1500, 0}, {1500, 600, 0, 900, 600}, {10, 0, 7, 10, 7},
		{5, 6, 0, 0, 6}, // one came between the two that were read
	} {
		before := map[string]uint64{"xdp_redirect": 9000, "forwarded": 30, "xdp_drop_no_socket": 200}
		got := measured(control.Steering{Queues: 2, Rule: true}, before, map[string]uint64{
			"xdp_redirect": 9000 + c.redirect, "forwarded": 30 + c.forwarded, "xdp_drop_no_socket": 200 + c.dropped})
		if got != (control.Steering{Queues: 2, Rule: true, Frames: c.frames, Astray: c.astray}) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// Where UDP sockets have taken the place of AF_XDP (transport = "auto"), frames come to
// them from all queues: the traffic of a whole NIC is not for the only queue that is told
// of.
func TestToSteer(t *testing.T) {
	for _, c := range []struct {
		transport     udpnode.Transport
		queues, there int
		want          bool
	}{{udpnode.XDP, 2, 8, true}, {udpnode.XDP, 8, 8, false}, {udpnode.UDP, 1, 8, false}} {
		lack := toSteer(node.InterfaceInfo{Transport: c.transport.String(), Queues: c.queues}, c.there)
		if (lack == "") != c.want {
			t.Errorf("%+v: %q", c, lack)
		}
	}
}

// A veth has no interrupts that busy polling could save, and is refused.
func TestProcessBusyPoll(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	p := launch(t, net.B, socketPath(t), nil, "--busy-poll", "20us")
	p.said(t, "busy polling makes veth ten times slower; want none")
	if code := p.code(t); code != exitInterface {
		t.Errorf("exit code %d, want %d", code, exitInterface)
	}
}

// What a killed daemon has remembered of interrupts, and cannot be read, keeps no daemon
// away that leaves them alone.
func TestProcessDamagedDeferral(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	socket := socketPath(t)
	path := Config{Control: socket}.beside(nic.DeferSuffix)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, net.B, socket, nil)
	p.said(t, "interrupts that a former daemon held back are late still")
	p.said(t, "remove the file "+path)
	p.ready(t)
}

// A veth cannot be steered, and the daemon says so. What a former daemon has left is
// dealt with whether or not this one steers; with all queues in use there is nothing to
// steer. A file that cannot be used keeps only a daemon away that is to steer.
func TestProcessSteer(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{Queues: 2})
	socket := socketPath(t)
	path := Config{Control: socket}.steerPath()
	gone := func(what string) {
		t.Helper()
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: what a former daemon has left is there still: %v", what, err)
		}
	}
	leaveSteered(t, net.B, path)
	p := launch(t, net.B, socket, nil, "--queues", "1", "--steer")
	p.said(t, "neither an indirection table nor rules")
	p.said(t, "ethtool -L")
	if code := p.code(t); code != exitInterface || strings.Contains(p.out.String(), "msg=closed") {
		t.Errorf("exit code %d, want %d, and no word of an end: %s", code, exitInterface, p.out.String())
	}
	gone("a daemon that fails to steer")
	leaveSteered(t, net.B, path)
	p = launch(t, net.B, socket, nil, "--steer")
	p.said(t, "nothing to steer: all queues are in use")
	p.said(t, "serving")
	gone("a daemon with all queues")
	p.signal(t, unix.SIGKILL)
	p.code(t)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = launch(t, net.B, socket, nil, "--queues", "1", "--steer")
	p.said(t, "remove the file when")
	if code := p.code(t); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	p = launch(t, net.B, socket, nil)
	p.said(t, "former daemon's steering is not undone")
	p.said(t, "serving")
}

// leaveSteered writes the file of a daemon that was killed, which had set nothing: of
// its steering, or of the interrupts that it held back.
func leaveSteered(t *testing.T, s *testnet.Side, path string) {
	t.Helper()
	var n *nic.Steered
	err := s.Do(func() (err error) {
		n, err = nic.ToSteer(s.IfName)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"version": 2, "interface": "former", "nic": n.Identity, "queues": 1})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The command undoes what a killed daemon has left, once, and not while a daemon serves.
// The interface need not have the name that it had.
func TestProcessUnsteer(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{Queues: 2})
	socket := socketPath(t)
	path := Config{Control: socket}.steerPath()
	run := func(want int, said string, args ...string) {
		t.Helper()
		p := launch(t, net.B, socket, nil, append(args, "--unsteer")...)
		p.said(t, said)
		if code := p.code(t); code != want {
			t.Errorf("%q: exit code %d, want %d", said, code, want)
		}
	}
	run(exitOK, "no setting of --steer is left")
	leaveSteered(t, net.B, path)
	run(exitOK, "was steered as former")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
	leaveSteered(t, net.B, path)
	run(exitOK, "no longer is", "--interface", "former")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
	held := Config{Control: socket}.beside(nic.DeferSuffix)
	for _, path := range []string{held, filepath.Join(filepath.Dir(held), "former.napi")} {
		leaveSteered(t, net.B, path)
		run(exitOK, "no setting of --busy-poll is left")
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Error(path, err)
		}
	}
	if err := os.WriteFile(held, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(exitFailure, "remove the file "+held)
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	leaveSteered(t, net.A, path) // in another namespace: out of reach
	run(exitOK, "not here any more")
	if _, err := os.Stat(path + ".gone"); err != nil {
		t.Error(err)
	}
	p := launch(t, net.B, socket, nil)
	p.said(t, "serving")
	leaveSteered(t, net.B, path)
	run(exitInterface, "stop it first")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
