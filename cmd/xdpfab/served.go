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

// askLimit bounds how long info waits for a daemon.
const askLimit = 5 * time.Second

// daemonOf returns the daemon of an interface, as programs find it; nil if there is none
// that answers this user.
func daemonOf(ctx context.Context, ifname, socket string) *servedBy {
	named := cmp.Or(socket, os.Getenv(xdpfab.ControlEnv))
	path := cmp.Or(named, xdpfab.DefaultControl(ifname))
	d, err := control.Dial(path)
	if err != nil {
		return nil
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	s, err := d.Status(ctx)
	if err != nil || s.Interface.Name != ifname || named == "" && s.Elsewhere() {
		return nil
	}
	return &servedBy{PID: s.PID, Control: path, Guests: len(s.Guests)}
}
