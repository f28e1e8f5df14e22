// SPDX-License-Identifier: Apache-2.0

package share

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Receiver is the guest's domain, which takes what comes for its endpoints. It is called
// on the engine's thread.
type Receiver interface {
	// Inflow takes the messages from an address to an endpoint; nil if it receives none.
	// If the host may have credit, identity is that of the endpoint, and otherwise 0.
	Inflow(endpoint uint16, from wire.Addr) (in Inflow, identity uint64)
	// Events takes the events of an endpoint; nil if it takes none.
	Events(endpoint uint16) engine.Events
	// Callee has the calls of a node at an address to an endpoint answered; nil if the
	// endpoint has no function. told may be called by any goroutine, and the engine's
	// thread has to look then.
	Callee(endpoint uint16, from wire.Addr, told func()) session.Callee
	// Operate executes an operation on the memory of an endpoint, and puts its result
	// into result, which has the right length. Settle is called when the operations at
	// hand have been executed.
	Operate(endpoint uint16, rec *wire.Record, result []byte) wire.Status
	Settle()
	// Lost is called when no host has credit from now on.
	Lost()
}

// Inflow takes the messages of one session: see Credit. The methods that package
// session's Inflow lacks are called between Begin and End.
type Inflow interface {
	session.Inflow
	// AdmitLeased takes a message for which there is room that was leased.
	AdmitLeased(m *wire.Message)
	// Find reports how a tagged atomic will end that was admitted, and copies what its
	// elements hold to values, if that is not nil.
	Find(values []byte) wire.Status
	// Lease leases room to the host: all that there is, or none if it is not worth the
	// while.
	Lease(all bool) matching.Room
	// Reclaim takes back room that has not been used.
	Reclaim(matching.Room)
}

// Counted is what the guest counts with.
type Counted interface {
	// Count adds operations that returned what they found, and operations that did not,
	// with the bytes of each kind. It must not block.
	Count(reads, writes, bytesRead, bytesWritten uint64)
	// Tell follows Count, and wakes the waiters.
	Tell()
}
