// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// follower is a call of Follow.
type follower struct{ changed func(wire.Link) }

// hostCall is a call that the host is to have sooner or later, while the callers that ask
// for it must not wait. One goroutine makes them in order.
type hostCall struct {
	verb      string
	arguments any
}

// mostHints bounds those that are only hints.
const mostHints = 64

// Follow implements device: the host follows the address, and learn hears of changes.
func (b *borrowed) Follow(a wire.Addr, l wire.Link, changed func(wire.Link)) (stop func()) {
	if !a.IsIP() {
		return func() {}
	}
	a = wire.Addr{IP: a.IP} // the way is that of the node
	f := &follower{changed}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.followers[a] == nil {
		b.followers[a] = map[*follower]struct{}{}
	}
	b.followers[a][f] = struct{}{}
	b.send(hostCall{share.CallFollow, share.Follow{Addr: a, Link: l}})
	return func() {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		delete(b.followers[a], f)
		if len(b.followers[a]) == 0 {
			delete(b.followers, a)
			b.send(hostCall{share.CallForget, a})
		}
	}
}

// Silent implements device. It does not block.
func (b *borrowed) Silent(remote netip.Addr) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if len(b.pending) < mostHints { // or this hint will be given again
		b.send(hostCall{share.CallSilent, remote})
	}
}

// send has a call run. b.mu is held.
func (b *borrowed) send(e hostCall) {
	if b.Ended != nil {
		return
	}
	b.pending = append(b.pending, e)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run makes the queued calls.
func (b *borrowed) run() {
	for {
		select {
		case <-b.closing.Done():
			return
		case <-b.wake:
		}
		b.Mu.Lock()
		calls := b.pending
		b.pending = nil
		b.Mu.Unlock()
		for _, e := range calls {
			_ = b.Call(b.closing, e.verb, e.arguments, nil) // without it, the way stays as it is
		}
	}
}

// learn takes the new way to an address, which the host reports unasked.
func (b *borrowed) learn(text json.RawMessage) {
	var m share.Moved
	if json.Unmarshal(text, &m) != nil {
		return
	}
	b.Mu.Lock()
	followers := slices.Collect(maps.Keys(b.followers[m.Addr]))
	b.Mu.Unlock()
	for _, f := range followers {
		f.changed(m.Link)
	}
}
