// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// Memory that the host cannot map is attended: the host is not told of it, and hands
// over the operations whose keys it does not know. Endpoints are served so from the
// first such region on; until then the host need not look for keys that it does not
// know.

// attends is what a guest attends to. Its lock is held during calls, and comes before
// that of the conversation.
type attends struct {
	mu     sync.Mutex
	on     bool
	keys   map[uint64]struct{}
	served map[uint16]share.Serve // the endpoints, as the host was told of them
}

// mayAttend reports whether the host hands operations over.
func (a *Attached) mayAttend() bool {
	return slices.Contains(a.host.Features, share.FeatureAttended)
}

// serve makes an endpoint accept sessions.
func (a *Attached) serve(s share.Serve) error {
	x := &a.attends
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.served == nil {
		x.served = map[uint16]share.Serve{}
	}
	if s.Calls && !slices.Contains(a.host.Features, share.FeatureCalls) {
		return errno.Refuse(errno.NotImplemented, "a function for requests: the daemon of %s is of a release that has "+
			"no such functions for the programs behind it; want a later one", a.Info().Name)
	}
	s.Attends = x.on
	err := a.Call(context.Background(), share.CallServe, s, nil)
	if err == nil {
		x.served[s.Endpoint] = s
	}
	return err
}

// attend has the host hand over the operations on a region.
func (a *Attached) attend(r *mr.Region) error {
	if r.Name() != "" {
		return errno.Refuse(errno.NotImplemented,
			"region %q, which the daemon of %s cannot map: look-ups by name would not find it; want no "+
				"name, or memory that mr.Memfd returned", r.Name(), a.Info().Name)
	}
	x := &a.attends
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.on {
		x.on, x.keys = true, map[uint64]struct{}{}
		for number, s := range x.served {
			s.Attends = true
			err := a.Call(context.Background(), share.CallServe, s, nil)
			switch {
			case errors.Is(err, errno.Closed): // and its number given back
				delete(x.served, number)
				continue
			case errors.Is(err, errno.HostLost): // the next one is told
			case err != nil:
				x.on = false
				return err
			}
			x.served[number] = s
		}
	}
	x.keys[r.Key()] = struct{}{}
	return nil
}

// attendsTo reports whether a region is attended.
func (a *Attached) attendsTo(key uint64) bool {
	a.attends.mu.Lock()
	defer a.attends.mu.Unlock()
	_, is := a.attends.keys[key]
	return is
}

// unattend takes back attended memory, and reports whether it was that.
func (a *Attached) unattend(key uint64) (was bool) {
	a.attends.mu.Lock()
	defer a.attends.mu.Unlock()
	_, was = a.attends.keys[key]
	delete(a.attends.keys, key)
	return was
}
