// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A guest's endpoint is the tenant of its number. See also guestEndpoint.admit.

// String names the holder of the number in the error of a program that wants it too.
func (ep *GuestEndpoint) String() string { return "a program of the daemon, which may be this one" }

// Serves implements node.Tenant.
func (ep *GuestEndpoint) Serves() bool { return ep.on.Load() }

// Requested implements node.Tenant.
func (ep *GuestEndpoint) Requested(*wire.Connection, wire.Addr, int64) (wire.HelloStatus, wire.Connection) {
	return wire.HelloNoEndpoint, wire.Connection{}
}

// SessionKey implements node.Tenant.
func (ep *GuestEndpoint) SessionKey() *session.Key { return ep.key }

// EventsTo implements node.Tenant.
func (ep *GuestEndpoint) EventsTo() engine.Events {
	if !ep.events.Load() {
		return nil
	}
	return ep.Guest.in.Events(ep.number)
}

// Inflow implements node.Tenant.
func (ep *GuestEndpoint) Inflow(from wire.Addr) session.Inflow {
	if !ep.messages.Load() {
		return nil
	}
	return ep.Guest.in.NewInflow(ep.number, &ep.credit, from)
}

// Attendant hands operations on memory to the guest that only the guest has mapped.
func (ep *GuestEndpoint) Attendant(from wire.Addr, origin uint64) session.Attendant {
	if !slices.Contains(ep.Guest.features, share.FeatureAttended) {
		return nil
	}
	return ep.Guest.in.NewAttendant(ep.number, from, origin, &ep.attends)
}

// Callee has the calls of a session answered by a function of the guest.
func (ep *GuestEndpoint) Callee(from wire.Addr, _ session.Party, ended func()) session.Callee {
	if !ep.calls.Load() {
		return nil
	}
	return ep.Guest.in.NewCallee(ep.number, from, ended)
}

// Begin begins a session with the guest's memory.
func (ep *GuestEndpoint) Begin(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served {
	own := ep.Guest.executor(queue, x)
	ep.met.Store(true)
	if o := ep.observer.Load(); o != nil {
		return own.Begin(now, p, o)
	}
	return own.Begin(now, p, nil)
}

// MayReside implements node.Tenant.
func (ep *GuestEndpoint) MayReside() bool { return false }

// IsTarget implements node.Tenant.
func (ep *GuestEndpoint) IsTarget() bool { return true }
