// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
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

// A veth cannot be steered, and the daemon says so. What a former daemon has left is
// dealt with whether or not this one steers; with all queues in use there is nothing to
// steer.
func TestProcessSteer(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{Queues: 2})
	socket := socketPath(t)
	path := Config{Control: socket}.steerPath()
	leave := func() {
		t.Helper()
		text, err := json.Marshal(map[string]any{"index": net.B.IfIndex, "mac": net.B.MAC.String(), "set": []int{0, 0}})
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gone := func(what string) {
		t.Helper()
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: what a former daemon has left is there still: %v", what, err)
		}
	}
	leave()
	p := launch(t, net.B, socket, nil, "--queues", "1", "--steer")
	p.said(t, "neither an indirection table nor rules")
	p.said(t, "ethtool -L")
	if code := p.code(t); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	gone("a daemon that fails to steer")
	leave()
	p = launch(t, net.B, socket, nil, "--steer")
	p.said(t, "nothing to steer: all queues are in use")
	p.said(t, "serving")
	gone("a daemon with all queues")
}
