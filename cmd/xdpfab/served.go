// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// servedBy says which daemon serves an interface.
type servedBy struct {
	PID     int    `json:"pid"`
	Control string `json:"control"` // its socket
	Guests  int    `json:"guests"`  // programs that are attached
}

// Bounds on how long info waits for a daemon: by the way, and to know what it has got.
const (
	askLimit   = 5 * time.Second
	probeLimit = 30 * time.Second
)

// daemonOf returns the daemon of an interface, as programs find it; nil if there is none
// that answers this user.
func daemonOf(ctx context.Context, ifname, socket string) *servedBy {
	s := statusOf(ctx, ifname, socket, askLimit)
	if s == nil {
		return nil
	}
	return &servedBy{PID: s.PID, Control: controlOf(ifname, socket), Guests: len(s.Guests)}
}

// controlOf is the control socket at which programs look for the daemon of an interface.
func controlOf(ifname, socket string) string {
	return cmp.Or(socket, os.Getenv(xdpfab.ControlEnv), xdpfab.DefaultControl(ifname))
}

// statusOf asks the daemon of an interface, as daemonOf does.
func statusOf(ctx context.Context, ifname, socket string, limit time.Duration) *control.Status {
	named := cmp.Or(socket, os.Getenv(xdpfab.ControlEnv)) != ""
	d, err := control.Dial(controlOf(ifname, socket))
	if err != nil {
		return nil
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := d.Status(ctx)
	if err != nil || s.Interface.Name != ifname || !named && s.Elsewhere() {
		return nil
	}
	return &s
}
