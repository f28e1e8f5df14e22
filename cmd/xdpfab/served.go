// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
)

// servedBy describes which daemon serves an interface.
type servedBy struct {
	PID     int    `json:"pid"`
	Control string `json:"control"` // its socket
	Guests  int    `json:"guests"`  // programs that are attached
	// Transport is "xdp" or "udp": what carries its frames.
	Transport string `json:"transport"`
	// Steering is how the daemon steers the NIC, and the frames counted since; nil if it
	// does not.
	Steering *control.Steering `json:"steering,omitempty"`
	// VLAN is whose frames it takes: "untagged", "any" or an id; empty if it does not
	// say.
	VLAN string `json:"vlan,omitempty"`
}

// Bounds on how long info waits for a daemon: by the way, and to know what it has got.
// They are variables for tests.
var (
	askLimit   = 5 * time.Second
	probeLimit = 30 * time.Second
)

// daemonsOf asks the daemons of interfaces, as programs find them, all at the same time.
func daemonsOf(ctx context.Context, list []nic.Interface, socket string) []served {
	found := make([]served, len(list))
	var wg sync.WaitGroup
	for n, i := range list {
		wg.Go(func() { found[n].status, found[n].err = statusOf(ctx, i.Name, socket, askLimit) })
	}
	wg.Wait()
	return found
}

// served is what the daemon of an interface says.
type served struct {
	status *control.Status // nil if there is none that answers this user
	err    error           // why there is one, but no status: it is silent
}

// by describes the daemon, if it has answered.
func (s *served) by(ifname, socket string) *servedBy {
	if s.status == nil {
		return nil
	}
	return &servedBy{PID: s.status.PID, Control: controlOf(ifname, socket), Guests: len(s.status.Guests),
		Transport: s.status.Interface.Transport, Steering: s.status.Steering, VLAN: s.status.VLAN}
}

// tags is whose frames are taken by the daemon, or else by a domain.
func (s *servedBy) tags() bpf.VLANPolicy {
	if s == nil || s.VLAN == "" {
		return bpf.VLANUntagged
	}
	v, _ := bpf.ParseVLAN(s.VLAN)
	return v
}

// silence reports that the daemon has not answered; empty if it has, or there is none.
func (s *served) silence() string {
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

// controlOf is the control socket at which programs look for the daemon of an interface.
func controlOf(ifname, socket string) string {
	return cmp.Or(socket, control.DefaultPath(ifname))
}

// statusOf asks the daemon of an interface. The status is nil if there is no daemon that
// serves it and answers this user. The error says that a daemon has not answered in time.
func statusOf(ctx context.Context, ifname, socket string, limit time.Duration) (*control.Status, error) {
	named := socket != ""
	path := controlOf(ifname, socket)
	silent := fmt.Errorf("the daemon at %s has not told its status within %v: it is stopped, or its machine is "+
		"overloaded: have it go on (kill -CONT), or restart it", path, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, silent)
	defer cancel()
	d, err := control.Dial(path)
	switch {
	case errors.Is(err, syscall.EAGAIN): // others wait to be let in, as many as the kernel allows
		return nil, silent
	case err != nil:
		return nil, nil
	}
	defer d.Close()
	s, err := d.Status(ctx)
	switch {
	case err != nil && ctx.Err() != nil || errors.Is(err, syscall.EAGAIN):
		return nil, cmp.Or(context.Cause(ctx), silent)
	case err != nil || s.Interface.Name != ifname || !named && s.Elsewhere():
		return nil, nil
	}
	return &s, nil
}
