// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A guest's endpoint is the tenant of its number. See also guestEndpoint.admit.

func (ep *guestEndpoint) Serves() bool { return ep.on.Load() }

func (ep *guestEndpoint) Requested(*wire.Connection, wire.Addr, int64) (wire.HelloStatus, wire.Connection) {
	return wire.HelloNoEndpoint, wire.Connection{}
}

func (ep *guestEndpoint) SessionKey() *session.Key { return ep.key }

func (ep *guestEndpoint) EventsTo() engine.Events {
	if !ep.events.Load() {
		return nil
	}
	return ep.guest.in.Events(ep.number)
}

func (ep *guestEndpoint) Inflow(from wire.Addr) session.Inflow {
	if !ep.messages.Load() {
		return nil
	}
	return ep.guest.in.NewInflow(ep.number, &ep.credit, from)
}

// Begin begins a session with the guest's memory.
func (ep *guestEndpoint) Begin(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served {
	own := ep.guest.executor(queue, x)
	ep.met.Store(true)
	if o := ep.observer.Load(); o != nil {
		return own.Begin(now, p, o)
	}
	return own.Begin(now, p, nil)
}

func (ep *guestEndpoint) MayReside() bool { return false }

func (ep *guestEndpoint) IsTarget() bool { return true }
