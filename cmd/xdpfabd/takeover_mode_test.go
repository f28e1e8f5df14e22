// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A takeover keeps the mode of XDP. One that forces another mode is refused, as is one
// that could not open the interface, and the daemon that is there serves all the while.
func TestProcessTakeoverMode(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	socket := socketPath(t)
	first := launch(t, net.B, socket, nil, "--xdp", "generic")
	first.said(t, "serving")
	refused := launch(t, net.B, socket, nil, "--takeover", "--xdp", "native")
	refused.said(t, "native XDP is wanted, and the program that is there runs in generic mode")
	refused.said(t, "that daemon continues")
	if strings.Contains(refused.out.String(), "its log") {
		t.Error("a refusal that is complete refers to a log that has no more of it")
	}
	if code := refused.code(t); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	for flag, want := range map[string]string{"--queues=3": "3 were asked for",
		"--busy-poll=20us": "busy polling makes veth ten times slower"} {
		unfit := launch(t, net.B, socket, nil, "--takeover", flag)
		unfit.said(t, want)
		unfit.said(t, "that daemon continues")
		if code := unfit.code(t); code != exitFailure {
			t.Errorf("%s: exit code %d, want %d", flag, code, exitFailure)
		}
	}
	if log := first.out.String(); strings.Contains(log, "another daemon takes this one's place") {
		t.Errorf("the daemon stopped for one that cannot open the interface:\n%s", log)
	}
	next := launch(t, net.B, socket, nil, "--takeover")
	next.said(t, "the program that was there ran so")
	if code := first.code(t); code != exitOK {
		t.Errorf("exit code %d of the former daemon, want %d", code, exitOK)
	}
	if s, err := daemonAt(socket); err != nil || s.Interface.XDP != "generic" || s.Interface.Copy != "copy" {
		t.Errorf("%+v, %v; want generic XDP, copy", s.Interface, err)
	}
}
