// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
)

// The log warns of a rule whose programs no control socket lets in, and of no other one.
func TestWarnsOfShutSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a daemon of root is tested: run as root")
	}
	open := filepath.Join(t.TempDir(), "open.sock")
	const says = "rule allows programs that may not write to the control socket"
	for name, c := range map[string]struct {
		rule  GuestConfig
		mode  os.FileMode
		group string
		also  []SocketConfig
		warns bool
	}{
		"user":                    {rule: GuestConfig{User: "65534"}, warns: true},
		"group":                   {rule: GuestConfig{Group: "65534"}, warns: true},
		"open to all":             {rule: GuestConfig{User: "65534"}, mode: 0o666},
		"the socket's group":      {rule: GuestConfig{Group: "65534"}, group: "65534"},
		"user of that group":      {rule: GuestConfig{User: "65534"}, group: "65534"},
		"group without the right": {rule: GuestConfig{User: "65534"}, group: "65534", mode: 0o600, warns: true},
		"root":                    {rule: GuestConfig{User: "0"}},
		"denied":                  {rule: GuestConfig{User: "65534", Deny: true}},
		"anybody":                 {rule: GuestConfig{}},
		"another socket is open":  {rule: GuestConfig{User: "65534"}, also: []SocketConfig{{Path: open, Mode: 0o666}}},
		"that socket alone": {rule: GuestConfig{User: "65534", Socket: open}, also: []SocketConfig{{Path: open, Mode: 0o600}},
			warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, cfg := notifySocket(t), testConfig(t)
			c.rule.Serve = "*"
			cfg.Guests, cfg.Sockets, cfg.SocketGroup = []GuestConfig{c.rule}, c.also, c.group
			if cfg.SocketMode = control.DefaultMode; c.mode != 0 {
				cfg.SocketMode = c.mode
			}
			p := servePipe(t, cfg)
			receive(t, conn)
			if err := p.end(t); err != nil {
				t.Error(err)
			}
			if log := p.log.String(); strings.Contains(log, says) != c.warns {
				t.Errorf("want a warning: %t; the log:\n%s", c.warns, log)
			}
		})
	}
}
