// SPDX-License-Identifier: Apache-2.0

package matching

import "github.com/xdpfab/xdpfab/internal/wire"

// Reason is why a completion is what it is.
type Reason uint8

const (
	// Received: the message is in the buffer as a whole.
	Received Reason = iota
	// Truncated: the message was longer than the buffer, which has its first bytes; or
	// elements of a tagged atomic lie behind its end, and none has changed (FI_ETRUNC).
	Truncated
	// Cancelled: the receive was cancelled, or the queue was closed (FI_ECANCELED).
	// It is with no message.
	Cancelled
	// Lost: the session of a claimed message ended before the whole message was here,
	// so the receive that retrieves it gets nothing (FI_ECONNABORTED).
	Lost
	// Spent: with no message, a multi-receive buffer is released: the last message
	// that was going into it has been lost, and too little is free for another one.
	Spent
	// Misplaced: a tagged atomic has changed nothing, since its elements lie in several
	// buffers of the receive, or not where their datatype may lie (FI_EINVAL).
	Misplaced
	// Unsupported: a tagged atomic has changed nothing, since there is no such operation
	// (FI_EOPNOTSUPP).
	Unsupported
)

// String names the reason in lower case.
func (r Reason) String() string {
	if names := [...]string{"received", "truncated", "cancelled", "lost", "spent", "misplaced",
		"unsupported"}; int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}

// Done is the completion of a receive, or what Peek found. Tag, Data, From and Length are
// those of the message; a Done without a message has only Context, Tagged, Reason and
// Released.
type Done struct {
	Context  any       // of the receive
	Note     any       // of the receive
	Reason   Reason    // how it ended
	Received uint64    // bytes that were put into the buffer
	Length   uint64    // bytes of the message; fi_cq(3)'s olen is Length - Received
	Tagged   bool      // the message or receive is a tagged one
	Atomic   bool      // the message is a tagged atomic: Received and Length are bytes of its elements
	HasData  bool      // Data came with the message
	Released bool      // a multi-receive buffer is the caller's again (FI_MULTI_RECV)
	Tag      uint64    // tag that was sent; zero if untagged
	Data     uint64    // remote CQ data
	Silent   bool      // the receive asked for no completion of a success
	From     wire.Addr // sender
	To       any       // what the message was sent to: Inflow.To
	Buf      []byte    // the message in a multi-receive buffer, or the elements of a tagged atomic; otherwise nil
	Offset   uint64    // where they begin in the buffer
}

// Sink is the completion queue. All three are called with the queue's mutex held: they
// must not block, and must not call the queue.
type Sink interface {
	// Take takes a place for one completion, and returns false if there is none.
	Take() bool
	// Return gives back a place that was taken.
	Return()
	// Deliver fills a place that was taken. d is valid during the call only.
	Deliver(d *Done)
}
