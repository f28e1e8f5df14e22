// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// asTenant is an endpoint as the tenant of its number.
type asTenant Endpoint

func (ep *asTenant) serves() bool { return ep.accepting.Load() }

func (ep *asTenant) admit(origin uint64) wire.HelloStatus {
	if ep.conn != nil {
		return ep.conn.admit(origin)
	}
	return wire.HelloAccepted
}

func (ep *asTenant) requested(*wire.Connection, wire.Addr, int64) (wire.HelloStatus, wire.Connection) {
	return wire.HelloNoEndpoint, wire.Connection{}
}

func (ep *asTenant) sessionKey() *session.Key { return ep.key }

func (ep *asTenant) eventsTo() engine.Events {
	if ep.recv == nil {
		return nil
	}
	return (*receiver)(ep)
}

func (ep *asTenant) inflow(from wire.Addr) session.Inflow {
	if ep.inbox == nil {
		return nil
	}
	return (*Endpoint)(ep).newInflow(from)
}

func (ep *asTenant) begin(x *executor.Executor, _ int, now int64, p session.TargetParams) engine.Served {
	if ep.conn != nil {
		ep.conn.met.Store(true)
	}
	if ep.mayReside() {
		return nil
	}
	return x.Begin(now, p, &ep.remote)
}

func (ep *asTenant) mayReside() bool { return ep.remote == (tally{}) }

func (ep *asTenant) isTarget() bool {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.av == nil && ep.recv == nil && ep.inbox == nil && ep.conn == nil && !ep.attr.dials
}
