// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/xsk"
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
		wg.Go(func() { found[n] = statusOf(ctx, i.Name, socket, askLimit) })
	}
	wg.Wait()
	return found
}

// served is what the daemon of an interface says.
type served struct {
	status *control.Status // nil if there is none that answers this user
	err    error           // why there is one, but no status: it is silent
	// elsewhere means that a daemon has the socket which is in another network namespace.
	elsewhere bool
	other     string // the interface that the daemon serves, if it is another one
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

// statusOf asks the daemon of an interface: the one at the socket, or else the one that
// programs find.
func statusOf(ctx context.Context, ifname, socket string, limit time.Duration) served {
	named := socket != ""
	d, err := control.Dial(controlOf(ifname, socket))
	switch {
	case errors.Is(err, control.ErrSilent):
		return served{err: err}
	case err != nil:
		return served{}
	}
	defer d.Close()
	if !named && d.Elsewhere() {
		return served{elsewhere: true}
	}
	d.Patience = limit
	s, err := d.Status(ctx)
	switch {
	case errors.Is(err, control.ErrSilent) || ctx.Err() != nil:
		return served{err: err}
	case err != nil:
		return served{}
	case s.Interface.Name != ifname:
		return served{other: s.Interface.Name}
	case !named && s.Elsewhere():
		return served{elsewhere: true}
	}
	return served{status: &s}
}

// mostServed is how many interfaces an error names.
const mostServed = 20

// servedNames are the interfaces that daemons of this network namespace serve, by sockets
// of a pattern.
func servedNames(pattern string) (names []string) {
	found, _ := filepath.Glob(pattern)
	for _, path := range slices.DeleteFunc(found, unserved) {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".sock"))
	}
	return names
}

// absent is the error of an interface that there is not, while daemons serve others by
// sockets of a pattern.
func absent(ifname, pattern string) error {
	served, what := servedNames(pattern), "no daemon serves any: start xdpfabd"
	if len(served) > 0 {
		what = "daemons serve " + tell.List(served, mostServed)
	}
	return interfaceError(fmt.Errorf("%w %q%s: %s", xsk.ErrNoInterface, ifname, tell.DidYouMean(ifname, served), what))
}
