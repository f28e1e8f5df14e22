// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Trial gathers evidence about a peer while somebody waits for its answer: so it takes no
// time of its own.
type Trial struct {
	dom    *xdpfab.Domain
	ifname string
	daemon bool         // carries the frames, and answers at the node's own addresses
	ended  func() error // non-nil if nobody waits for the answer any longer
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	found Finding
}

// firstSilence is how long a peer may take to answer before the trial begins. Most answer
// in microseconds.
const firstSilence = time.Second

// lastWord is how long Explain waits for a trial that is still under way.
const lastWord = 500 * time.Millisecond

// Begin has a trial begin when a second has passed, or a third of the give-up time if
// that is less. Explain or Drop ends it.
func Begin(ctx context.Context, dom *xdpfab.Domain, peer wire.Addr, ifname string, giveUp time.Duration) *Trial {
	ended := ctx.Err
	ctx, cancel := context.WithCancel(ctx)
	t := &Trial{dom: dom, ifname: ifname, ended: ended, cancel: cancel, done: make(chan struct{}),
		found: Finding{Peer: peer}}
	i := dom.Interface()
	t.found.NoUDP = !i.UDP && i.Transport != fi.TransportUDP.String()
	t.found.Own, t.daemon = owns(&i, peer), i.Daemon != ""
	if i.Index != 0 {
		t.found.elsewhereHere(i.Index, ifname, t.daemon)
	}
	go func() {
		defer close(t.done)
		select {
		case <-ctx.Done():
		case <-time.After(min(firstSilence, giveUp/3)):
			t.gather(ctx, &i)
		}
	}()
	return t
}

// owns reports whether an address is the interface's own.
func owns(i *fi.InterfaceInfo, peer wire.Addr) bool {
	if !peer.IsIP() {
		return i.MAC == peer.MAC.String()
	}
	return slices.ContainsFunc(append(strings.Fields(i.Served), i.Address), func(text string) bool {
		if p, err := netip.ParsePrefix(text); err == nil {
			return p.Addr() == peer.IP
		}
		return text == peer.IP.String()
	})
}

// Drop ends a trial that is not needed.
func (t *Trial) Drop() {
	t.cancel()
	<-t.done
}

// Explain adds to the error of a dial why the peer may not have answered. Other errors,
// and that of a dial that was interrupted, it returns as they are.
func (t *Trial) Explain(err error) error {
	defer t.Drop()
	switch {
	case t.ended() != nil: // whoever interrupts a dial knows why
		calls.SilenceTold(err)
		return err
	case errors.Is(err, xdpfab.ErrRefused) && t.found.Own && !t.daemon: // refused by this domain itself
	case errors.Is(err, xdpfab.ErrPeerSilent):
	default:
		return err
	}
	select {
	case <-t.done:
	case <-time.After(lastWord):
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	calls.SilenceTold(err)
	if dark(t.ifname) {
		err = fmt.Errorf("%s has no carrier, so nothing leaves it: connect its cable, or set up its other end: %w",
			t.ifname, err)
	}
	said := t.found.Answers != "" && strings.Contains(err.Error(), t.found.Answers) && t.found.Peer.IsIP()
	switch {
	case errors.Is(err, route.ErrUnreachable): // says all that can be said
		return err
	case errors.Is(err, port.ErrNoUDP): // says who answers
		return fmt.Errorf("%w; %s; %s", err, t.found.whichOf(), t.found.more(t.ifname))
	case said:
		return fmt.Errorf("%w; %s", err, t.found.more(t.ifname))
	}
	return fmt.Errorf("%w: %s", err, t.found.Hint(t.ifname))
}

// dark reports whether an interface of this network namespace is up, and has no carrier.
func dark(ifname string) bool {
	i, err := net.InterfaceByName(ifname)
	return err == nil && i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning == 0
}

// note records evidence.
func (t *Trial) note(f func(*Finding)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.found)
}

// gather asks the kernel, the peer's host, and the peer over the other encapsulation.
func (t *Trial) gather(ctx context.Context, i *fi.InterfaceInfo) {
	peer := t.found.Peer
	if i.Index == 0 || t.found.Own {
		return
	}
	if elsewhere(ctx, i.Daemon) {
		t.note(func(f *Finding) { f.Other = "" })
		return
	}
	if t.found.Other != "" {
		return
	}
	w, err := look(i.Index, peer)
	defer w.close()
	if err != nil {
		return
	}
	to, others := peer.IP, []wire.Addr(nil)
	if peer.IsIP() {
		t.note(func(f *Finding) { f.Gateway = w.gateway() })
		known, _ := w.resolver.Neighbours()
		if mac, is := known[peer.IP]; is {
			t.note(func(f *Finding) { f.Neighbour = true })
			others = append(others, wire.Addr{MAC: mac, Endpoint: peer.Endpoint, Lane: peer.Lane})
		}
	}
	for _, ip := range w.aliases {
		t.note(func(f *Finding) { f.Neighbour = true })
		others, to = append(others, wire.Addr{IP: ip, Endpoint: peer.Endpoint, Lane: peer.Lane}), w.aliases[0]
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if to.IsValid() {
		wg.Go(func() {
			port, _ := knock(ctx, t.ifname, to, knocksBeside)
			t.note(func(f *Finding) { f.Port = port })
		})
	}
	for _, other := range others {
		if other.IsIP() && t.found.NoUDP || !other.IsIP() && i.Transport == fi.TransportUDP.String() {
			continue // this node cannot send it
		}
		t.dial(ctx, other.String())
	}
}

// dial tries another address of the peer.
func (t *Trial) dial(ctx context.Context, addr string) {
	p, err := t.dom.Dial(ctx, addr)
	if ctx.Err() != nil {
		return
	}
	t.note(func(f *Finding) {
		f.Tried = append(f.Tried, addr)
		if err == nil {
			f.Answers = addr
		}
	})
	if err == nil {
		_ = p.Close()
	}
}

// askLimit bounds the wait for this node's daemon, which has answered before.
const askLimit = 5 * time.Second

// elsewhere reports whether the interface of a daemon is in another network namespace,
// whose neighbours are not known here.
func elsewhere(ctx context.Context, socket string) bool {
	if socket == "" {
		return false
	}
	c, err := control.Dial(socket)
	if err != nil {
		return true
	}
	defer c.Close()
	c.Patience = askLimit
	s, err := c.Status(ctx)
	return err != nil || s.Elsewhere()
}
