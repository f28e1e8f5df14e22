// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"maps"
	"net/netip"
	"time"

	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// askPause is the least time between two requests for one neighbour: the kernel
// itself asks as often.
const askPause = time.Second

// path is the way to one IP address, for all followers of that address.
type path struct {
	remote    netip.Addr
	source    netip.Addr // the watcher's
	local     wire.MAC   // of the interface that has source; the watcher's
	next      netip.Addr // the neighbour that packets go to; the watcher's
	mac       wire.MAC   // the neighbour's, zero until it is known; the watcher's
	told      way        // that all followers have, zero before the first; guarded by the watcher's mu
	fresh     bool       // has to be looked up; likewise
	followers map[*follower]struct{}
}

// way is what changes of a link.
type way struct {
	mac    wire.MAC   // of the next hop
	source netip.Addr // of this node
	local  wire.MAC   // of this node: the interface's, or that of one above
}

func wayOf(l *wire.Link) way { return way{l.Remote, l.LocalIP, l.Local} }

// follower is a call of Follow.
type follower struct {
	link    wire.Link // as told last; the watcher's
	changed func(wire.Link)
}

// Follow calls changed with a new link whenever the way to an IP address differs
// from link, and from then on from the link of the last call: by another gateway,
// from another source address, or because the next hop has another MAC address. The
// first call may come at once. The calls are made on the watcher's goroutine, and
// must not block.
//
// A further follower of an address has nothing looked up if its link is what the others
// were told: whatever changes that is noticed. If it is not, one of the two is old.
//
// After stop no call begins; one may be under way. A MAC address is reached
// directly, so changed is never called for it.
func (i *Interface) Follow(a wire.Addr, link wire.Link, changed func(wire.Link)) (stop func()) {
	if !a.IsIP() {
		return func() {}
	}
	w := i.watcher
	remote := a.IP.Unmap().WithZone("")
	f := &follower{link: link, changed: changed}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.paths[remote]
	if p == nil {
		p = &path{remote: remote, followers: map[*follower]struct{}{}}
		w.paths[remote] = p
	}
	p.followers[f] = struct{}{}
	if wayOf(&link) != p.told {
		p.fresh = true
		signal(w.wanted)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(p.followers, f)
		if len(p.followers) == 0 && w.paths[remote] == p {
			delete(w.paths, remote)
		}
	}
}

// Silent is a hint that a peer does not answer. The way to it is looked up anew, and
// the kernel is made to ask for the next hop, at most once a second; Follow tells
// the result. Silent never blocks, and any thread may call it.
func (i *Interface) Silent(remote netip.Addr) {
	select {
	case i.watcher.silent <- remote.Unmap().WithZone(""):
	default: // too many hints wait: this one will be given again
	}
}

// signal raises a flag that may be raised already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// lookUp finds the ways of all paths by the present routes and neighbours, or
// only of those that were never looked up.
func (w *watcher) lookUp(freshOnly bool) {
	var list []*path
	w.mu.Lock()
	for _, p := range w.paths {
		if p.fresh || !freshOnly {
			list = append(list, p)
		}
		p.fresh = false
	}
	w.mu.Unlock()
	w.find(list)
}

// find reads the tables for some paths. A path without a way keeps its old one,
// for nothing better is known.
func (w *watcher) find(paths []*path) {
	if len(paths) == 0 {
		return
	}
	own, err := w.i.serve()
	var known map[netip.Addr]wire.MAC
	if err == nil {
		known, err = w.i.resolver.Neighbours()
	}
	if err != nil {
		w.trouble(err)
		return
	}
	w.short = false
	for _, p := range paths {
		hop, err := w.i.resolver.Look(p.remote, own)
		if err != nil {
			continue
		}
		w.step(p, hop, known)
	}
}

// step takes a path's hop from the routes, and its MAC address if the neighbour
// is known. If it is not, the kernel is made to ask for it.
func (w *watcher) step(p *path, hop route.Hop, known map[netip.Addr]wire.MAC) {
	p.source, p.local = hop.Source, hop.Local
	if p.remote == hop.Source { // this node itself
		p.next = p.remote
		w.use(p, hop.MAC)
		return
	}
	if next := hop.Next(p.remote); next != p.next {
		p.next, p.mac = next, wire.MAC{}
	}
	if mac, ok := known[p.next]; ok {
		w.use(p, mac)
		return
	}
	w.ask(p.next)
}

// relocate applies what the kernel says of neighbours.
func (w *watcher) relocate(valid map[netip.Addr]wire.MAC) {
	var list []*path
	w.mu.Lock()
	for _, p := range w.paths {
		if _, ok := valid[p.next]; ok {
			list = append(list, p)
		}
	}
	w.mu.Unlock()
	for _, p := range list {
		w.use(p, valid[p.next])
	}
}

// suspect checks the way to a peer that does not answer: its next hop may have
// another MAC address than the kernel believes.
func (w *watcher) suspect(remote netip.Addr) {
	w.mu.Lock()
	p := w.paths[remote]
	w.mu.Unlock()
	if p == nil || time.Since(w.asked[p.next]) < askPause {
		return
	}
	before := p.mac
	w.find([]*path{p})
	if p.mac == before && p.next.IsValid() && p.next != p.source {
		w.ask(p.next)
	}
}

// ask makes the kernel look for a neighbour; relocate gets the answer.
func (w *watcher) ask(next netip.Addr) {
	now := time.Now()
	if now.Sub(w.asked[next]) < askPause {
		return
	}
	maps.DeleteFunc(w.asked, func(_ netip.Addr, at time.Time) bool { return now.Sub(at) >= askPause })
	w.asked[next] = now
	if err := w.i.resolver.Ask(next); err != nil {
		w.trouble(err)
	}
}

// use sends the path's frames to a MAC address, unless they already go there.
func (w *watcher) use(p *path, mac wire.MAC) {
	if p.mac = mac; w.lost {
		return
	}
	now := way{mac, p.source, p.local}
	w.mu.Lock()
	p.told = now
	var calls []*follower
	for f := range p.followers {
		if wayOf(&f.link) != now {
			calls = append(calls, f)
		}
	}
	w.mu.Unlock()
	for n, f := range calls {
		if n == 0 {
			w.say(Event{Kind: HopChanged, Remote: p.remote.String(), From: wayOf(&f.link).String(), To: now.String()})
		}
		f.link.Remote, f.link.LocalIP, f.link.Local = now.mac, now.source, now.local
		f.changed(f.link)
	}
}

// String describes a way: to a MAC address, from an IP address and a MAC address of the
// interface.
func (w way) String() string {
	return macText(w.mac) + " from " + w.source.String() + ", " + macText(w.local)
}

func macText(mac wire.MAC) string { return wire.Addr{MAC: mac}.String() }
