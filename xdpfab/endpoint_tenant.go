// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// An endpoint is the tenant of its number.

func (ep *Endpoint) serves() bool { return ep.accepting.Load() }

func (ep *Endpoint) admit(origin uint64) wire.HelloStatus {
	if ep.conn != nil {
		return ep.conn.admit(origin)
	}
	return wire.HelloAccepted
}

func (ep *Endpoint) requested(*wire.Connection, wire.Addr, int64) (wire.HelloStatus, wire.Connection) {
	return wire.HelloNoEndpoint, wire.Connection{}
}

func (ep *Endpoint) sessionKey() *session.Key { return ep.key }

func (ep *Endpoint) eventsTo() engine.Events {
	if ep.recv == nil {
		return nil
	}
	return (*receiver)(ep)
}

func (ep *Endpoint) inflow(from wire.Addr) session.Inflow {
	if ep.inbox == nil {
		return nil
	}
	return ep.newInflow(from)
}

func (ep *Endpoint) begin(x *executor.Executor, _ int, now int64, p session.TargetParams) engine.Served {
	if ep.conn != nil {
		ep.conn.met.Store(true)
	}
	if ep.mayReside() {
		return nil
	}
	return x.Begin(now, p, &ep.remote)
}

func (ep *Endpoint) mayReside() bool { return ep.remote == (tally{}) }

func (ep *Endpoint) isTarget() bool {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.av == nil && ep.recv == nil && ep.inbox == nil && ep.conn == nil && !ep.attr.dials
}
