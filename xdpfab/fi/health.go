// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"errors"

	"github.com/xdpfab/xdpfab/internal/node"
)

// Done is closed when the domain has ended: Close was called, or the interface can no
// longer be used. Err then says which. Calls and operations that wait fail with the
// cause.
func (d *Domain) Done() <-chan struct{} { return d.node.End.Done }

// Err is nil until Done is closed. Then it is the cause: it wraps ErrClosed after
// Close, or ErrInterfaceLost. A domain that ended by itself has still to be closed.
func (d *Domain) Err() error { return d.node.End.Returned() }

// asOwner is the domain as its node asks it.
type asOwner struct{ *Domain }

// Lost reports the end of the domain to its event queue.
func (d asOwner) Lost(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events.tell(d.Domain, d.attr.Context, cause)
}

// ShutTenants closes endpoints and what waits for a counter.
func (d asOwner) CloseTenants() {
	d.mu.Lock()
	eps := make([]*endpoint, 0, len(d.endpoints))
	for _, ep := range d.endpoints {
		eps = append(eps, ep)
	}
	d.mu.Unlock()
	for _, ep := range eps {
		ep.closeNow()
	}
	for _, p := range d.passives() {
		p.closeNow()
	}
	d.endWork()
}

// by fills in the driver of an operation that failed. An operation that failed because
// the domain ended gets the domain's cause.
func (e *OpError) by(st *node.Stepper) *OpError {
	e.stepper = st
	if errors.Is(e.Cause, ErrClosed) {
		e.Cause = st.End.Closed()
	}
	return e
}
