// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// guestReceiver is a domain as its carrier knows it: what peers send to its endpoints
// goes there.
type guestReceiver struct{ d *Domain }

// Inflow implements share.Receiver. The host has no credit for receives that endpoints
// share: it would have to be divided among them.
func (r guestReceiver) Inflow(endpoint uint16, from wire.Addr) (share.Inflow, uint64) {
	ep := r.d.serving(endpoint)
	if ep == nil || ep.inbox == nil {
		return nil, 0
	}
	identity := ep.identity
	if ep.inbox.ep != ep {
		identity = 0
	}
	return ep.newInflow(from), identity
}

// Events implements share.Receiver.
func (r guestReceiver) Events(endpoint uint16) engine.Events { return r.d.node.EventsOf(endpoint) }

// Lost implements share.Receiver.
func (r guestReceiver) Lost() {
	for _, ep := range *r.d.served.Load() {
		if ep.inbox != nil {
			ep.inbox.queue.ReclaimAll()
		}
	}
}
