// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/node"
)

// Stepper is what steps the endpoint's engine.
func (ep *Endpoint) Stepper() *node.Stepper { return ep.stepper }

// CQ is the completion queue of the endpoint's operations.
func (ep *Endpoint) CQ() *CompletionQueue { return ep.cq }

// Domain is the endpoint's.
func (ep *Endpoint) Domain() *Domain { return ep.dom }

// Ready reports whether the endpoint accepts operations.
func (ep *Endpoint) Ready() bool { return ep.ready() }

// Drain is how Shutdown begins.
func (ep *Endpoint) Drain() error { return ep.drain() }

// Claim and Hand are the two halves of a post.
func (ep *Endpoint) Claim(cookie uint64) (calls.Claimed, error) { return ep.claim(cookie) }

// Hand is the second of them.
func (ep *Endpoint) Hand(c calls.Claimed) { ep.hand(c) }

// ClaimEntry claims an entry of the submission ring.
func (ep *Endpoint) ClaimEntry() (*engine.Submission, error) { return ep.claimEntry() }

// Peer is what the engine knows an address by.
func (ep *Endpoint) Peer(a Address) (engine.PeerID, error) { return ep.peer(a) }

// Peers is how many addresses have been dialled from the endpoint and are in use.
func (ep *Endpoint) Peers() int { return len(ep.names) }

// Calling is how many entries calls have, and how many queues of callers wait for one.
func (ep *Endpoint) Calling() (granted int32, lines int) { return ep.room.Calls() }

// Messages is how many messages are arriving.
func (ep *Endpoint) Messages() int { return ep.receiveQueue.queue.Usage().Inflows }

// AV is the address vector of a scalable endpoint.
func (s *ScalableEndpoint) AV() *AddressVector { return s.av }

// RX are its receive contexts.
func (s *ScalableEndpoint) RX() (list []*Endpoint) {
	for _, ep := range s.rx {
		list = append(list, handle(ep))
	}
	return list
}

// Users is how many endpoints and regions a counter is bound to.
func (c *Counter) Users() int { return c.users }

// Value is the memory of a counter: to look at it makes no progress.
func (c *Counter) Value() *gauge[uint64] { return &c.value }

// Reserve promises a place of the queue.
func (q *CompletionQueue) Reserve() bool { return q.reserve() }

// Tail is how many completions have come.
func (q *CompletionQueue) Tail() uint64 { return q.tail.Load() }

// Taken is how many places are promised, besides those lent in advance. Engine's thread.
func (q *CompletionQueue) Taken() int64 { return q.reserved.Load() - q.lent }
