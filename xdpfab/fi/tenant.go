// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// asTenant is an endpoint as the tenant of its number.
type asTenant endpoint

// String says to those who want the same number what has it.
func (ep *asTenant) String() string {
	what := "an endpoint"
	switch {
	case ep.attr.mails:
		what = "a mailbox"
	case ep.attr.handler != nil:
		what = "a handler"
	}
	return what + " of the domain on " + ep.dom.label()
}

func (ep *asTenant) Serves() bool { return ep.accepting.Load() }

func (ep *asTenant) Admit(origin uint64) wire.HelloStatus {
	if ep.conn != nil {
		return ep.conn.admit(origin)
	}
	return wire.HelloAccepted
}

func (ep *asTenant) Requested(*wire.Connection, wire.Addr, int64) (wire.HelloStatus, wire.Connection) {
	return wire.HelloNoEndpoint, wire.Connection{}
}

func (ep *asTenant) SessionKey() *session.Key { return ep.key }

func (ep *asTenant) EventsTo() engine.Events {
	if ep.recv == nil {
		return nil
	}
	return (*receiver)(ep)
}

func (ep *asTenant) Inflow(from wire.Addr) session.Inflow {
	if ep.receiveQueue == nil {
		return nil
	}
	return (*endpoint)(ep).newInflow(from)
}

func (ep *asTenant) Begin(x *executor.Executor, _ int, now int64, p session.TargetParams) engine.Served {
	if ep.conn != nil {
		ep.conn.met.Store(true)
	}
	if ep.MayReside() {
		return nil
	}
	return x.Begin(now, p, &ep.remote)
}

func (ep *asTenant) MayReside() bool { return ep.remote == (tally{}) }

func (ep *asTenant) IsTarget() bool {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.av == nil && ep.recv == nil && ep.receiveQueue == nil && ep.conn == nil && !ep.attr.dials
}

// guestReceiver is a domain as its guest ring knows it: what peers send to its endpoints
// goes there.
type guestReceiver struct{ d *Domain }

// Inflow implements share.Receiver. The host has no credit for receives that endpoints
// share: it would have to be divided among them.
func (r guestReceiver) Inflow(endpoint uint16, from wire.Addr) (share.Inflow, uint64) {
	ep := r.d.serving(endpoint)
	if ep == nil || ep.receiveQueue == nil {
		return nil, 0
	}
	identity := ep.identity
	if ep.receiveQueue.ep != ep {
		identity = 0
	}
	return ep.newInflow(from), identity
}

// Events implements share.Receiver.
func (r guestReceiver) Events(endpoint uint16) engine.Events { return r.d.node.EventsOf(endpoint) }

// Callee implements share.Receiver.
func (r guestReceiver) Callee(endpoint uint16, from wire.Addr, told func()) session.Callee {
	ep := r.d.serving(endpoint)
	if ep == nil {
		return nil
	}
	return (*asTenant)(ep).Callee(from, session.Party{MAC: from.MAC, IP: from.IP}, func() {
		told()
		ep.stepper.Eng.Alert()
	})
}

// Operate implements share.Receiver. Whoever has a session with the endpoint has proven
// its key.
func (r guestReceiver) Operate(endpoint uint16, rec *wire.Record, result []byte) wire.Status {
	ep := r.d.serving(endpoint)
	if ep == nil {
		return wire.StatusNotExecuted // it has been closed
	}
	return r.d.node.Operate(rec, ep.key.ID(), result)
}

// Settle implements share.Receiver.
func (r guestReceiver) Settle() { r.d.node.Settle() }

// Lost implements share.Receiver.
func (r guestReceiver) Lost() {
	for _, ep := range *r.d.served.Load() {
		if ep.receiveQueue != nil {
			ep.receiveQueue.queue.ReclaimAll()
		}
	}
}
