// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// OpFlags are the flags of one operation, after fi_atomic(3) and fi_rma(3). The numbers
// are libfabric's. Flags that are not among the constants are refused with ErrBadFlags,
// FI_COMMIT_COMPLETE with ErrNotImplemented, since no region is durable.
type OpFlags uint64

const (
	// FlagFence defers the operation, and all posted after it to the same peer,
	// until every earlier one has completed (FI_FENCE).
	FlagFence OpFlags = 1 << 21
	// FlagInject lets the caller reuse the operand buffers and Msg.RMA on return, or the
	// buffers of a write and RMA.Extents (FI_INJECT). The buffers may have up to
	// EndpointAttr.InjectSize bytes together.
	FlagInject OpFlags = 1 << 25
	// FlagMore means that another operation follows at once, so the poller need not be
	// woken for this one (FI_MORE). The next post that fails, or has no FlagMore, wakes
	// it, and so does any goroutine that reads completions or waits.
	FlagMore OpFlags = 1 << 18
	// FlagDeliveryComplete asks for a completion only after the operation has been
	// applied (FI_DELIVERY_COMPLETE). That is always so: the weaker levels below are
	// promises that are kept as well.
	FlagDeliveryComplete OpFlags = 1 << 28
	// FlagCompletion asks for an entry in a completion queue that was bound with
	// BindSelective (FI_COMPLETION).
	FlagCompletion OpFlags = 1 << 24
	// FlagInjectComplete asks for a completion as soon as the buffers may be used again
	// (FI_INJECT_COMPLETE).
	FlagInjectComplete OpFlags = 1 << 26
	// FlagTransmitComplete asks for a completion when the operation cannot get lost any
	// more (FI_TRANSMIT_COMPLETE).
	FlagTransmitComplete OpFlags = 1 << 27
	// FlagMatchComplete asks for a completion when the operation has found its target
	// (FI_MATCH_COMPLETE).
	FlagMatchComplete OpFlags = 1 << 31
	// FlagDefaults stands for the flags of the endpoint, which EndpointAttr.OpFlags or
	// Endpoint.SetOpFlags set (op_flags). The calls of libfabric that take no flags use
	// those; the ones that do, like the calls here, take their own alone. The number is
	// xdpfab's own.
	FlagDefaults OpFlags = 1 << 63
	// FlagRemoteCQData sends Msg.Data with the operation (FI_REMOTE_CQ_DATA): once all
	// of it has been executed, the completion queue that is bound with BindRecv to the
	// target endpoint has an entry with the data. If there is none, the operation fails
	// with ErrNoRemoteCQ, and nothing of it is executed. While that queue is full, the
	// operation waits, and so do those behind it, up to four times the give-up time.
	FlagRemoteCQData OpFlags = 1 << 17

	// The flags of receives; see Endpoint.Receive.
	FlagMultiRecv OpFlags = 1 << 16 // FI_MULTI_RECV
	FlagPeek      OpFlags = 1 << 19 // FI_PEEK
	FlagClaim     OpFlags = 1 << 59 // FI_CLAIM
	FlagDiscard   OpFlags = 1 << 58 // FI_DISCARD
	FlagDirected  OpFlags = 1 << 62 // FI_DIRECTED_RECV, of one receive; the number is xdpfab's own

	// FlagTagged makes the buffer of a tagged receive the target of an atomic, which
	// matches it as a message does; see Endpoint.Atomic (FI_TAGGED).
	FlagTagged OpFlags = 1 << 3
)

const ( // of its own, or go doc shows none of the flags
	commitComplete OpFlags = 1 << 30 // FI_COMMIT_COMPLETE

	completionLevels = FlagDeliveryComplete | FlagInjectComplete | FlagTransmitComplete | FlagMatchComplete
	generalFlags     = FlagFence | FlagRemoteCQData // of operations that are more than a Word
	knownOpFlags     = generalFlags | FlagInject | FlagMore | FlagCompletion | completionLevels
	atomicFlags      = knownOpFlags | FlagTagged
	receiveFlags     = FlagMultiRecv | FlagPeek | FlagClaim | FlagDiscard | FlagDirected | FlagCompletion |
		FlagMore | FlagDefaults
	defaultReceiveFlags = FlagMultiRecv | FlagCompletion
	defaultFlags        = FlagInject | FlagCompletion | completionLevels // that may be defaults of an endpoint
)

// check returns an error for flags that are not among those allowed.
func (f OpFlags) check(what string, allowed OpFlags) error {
	switch {
	case f&commitComplete != 0:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: %s %v: no region is durable, so nothing is ever committed; want commit_complete left out",
			what, f)
	case f&^allowed != 0:
		return errno.Refuse(ErrBadFlags, "xdpfab: %s %v: want some of %v", what, f, allowed)
	}
	return nil
}

// checkReceive returns an error for flags that no receive has.
func (f OpFlags) checkReceive() error {
	if err := f.check("flags of a receive", receiveFlags); err != nil {
		return err
	}
	how := f & (FlagPeek | FlagClaim | FlagDiscard | FlagMultiRecv)
	switch how {
	case 0, FlagMultiRecv, FlagPeek, FlagPeek | FlagClaim, FlagPeek | FlagDiscard, FlagClaim, FlagClaim | FlagDiscard:
		return nil
	}
	return errno.Refuse(ErrBadFlags,
		"xdpfab: flags of a receive %v: want one of multi_recv, peek, peek|claim, peek|discard, claim, "+
			"claim|discard, or none of these", how)
}

// CompletionFlags describe the operation that has completed, after fi_cq(3).
type CompletionFlags uint32

const (
	CompletionAtomic CompletionFlags = 1 << iota // FI_ATOMIC: an atomic operation
	CompletionRead                               // FI_READ: read, fetch or compare
	CompletionWrite                              // FI_WRITE: write, or base

	CompletionRemoteRead   // FI_REMOTE_READ: read, fetch or compare, of a peer
	CompletionRemoteWrite  // FI_REMOTE_WRITE: write, or base, of a peer
	CompletionRemoteCQData // FI_REMOTE_CQ_DATA: Completion.Data is that of the peer's operation

	CompletionRMA // FI_RMA: a remote read or write

	CompletionMsg       // FI_MSG: a message
	CompletionTagged    // FI_TAGGED: a message with a tag, or an atomic on the buffer of a receive
	CompletionSend      // FI_SEND: of Endpoint.Send or SendTagged
	CompletionRecv      // FI_RECV: of Endpoint.Receive or ReceiveTagged
	CompletionMultiRecv // FI_MULTI_RECV: the buffer of a receive with FlagMultiRecv is the caller's again
)

// BindFlags describe a binding to an endpoint, after fi_ep_bind in fi_endpoint(3). Flags
// that the object has no use for are refused with ErrBadFlags.
type BindFlags uint32

const (
	BindRead  BindFlags = 1 << iota // FI_READ: a counter of reads, fetch and compare operations
	BindWrite                       // FI_WRITE: a counter of writes and base operations
	// BindTransmit binds a completion queue for the operations that the endpoint posts
	// (FI_TRANSMIT), which is what no flag means too; or a counter of messages sent
	// (FI_SEND).
	BindTransmit
	// BindSelective binds a completion queue for failures, and for those operations and
	// receives alone that are posted with FlagCompletion (FI_SELECTIVE_COMPLETION). What
	// carries data always makes an entry, but for messages, and so does the end of a
	// buffer with FlagMultiRecv. A receive holds a place in the queue until it completes.
	BindSelective

	// BindRemoteRead binds a counter of the reads, fetch and compare operations of peers
	// (FI_REMOTE_READ). An operation on extents counts once for each.
	BindRemoteRead
	// BindRemoteWrite binds a counter of the writes and base operations of peers
	// (FI_REMOTE_WRITE). An operation on extents counts once for each.
	BindRemoteWrite

	// BindRecv binds a completion queue for the receives of the endpoint, and for the
	// operations of peers that carry data (FI_RECV); see Endpoint.Receive and
	// FlagRemoteCQData. Or it binds a counter of receives.
	BindRecv
)

const ( // likewise
	ownFlags     = BindRead | BindWrite | BindTransmit
	remoteFlags  = BindRemoteRead | BindRemoteWrite
	counterFlags = ownFlags | remoteFlags | BindRecv
	queueFlags   = BindTransmit | BindSelective | BindRecv
)

var opFlagNames = []string{3: "tagged", 16: "multi_recv", 17: "remote_cq_data", 18: "more", 19: "peek",
	20: "trigger", 21: "fence", 24: "completion", 25: "inject", 26: "inject_complete", 27: "transmit_complete",
	28: "delivery_complete", 30: "commit_complete", 31: "match_complete", 58: "discard", 59: "claim", 62: "directed",
	63: "defaults"}

// String returns the names of the flags, such as "more|fence".
func (f OpFlags) String() string { return flagString(f, opFlagNames) }

// MarshalText implements encoding.TextMarshaler.
func (f OpFlags) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// String returns the names of the flags, such as "atomic|read".
func (f CompletionFlags) String() string {
	return flagString(f, []string{"atomic", "read", "write", "remote_read", "remote_write", "remote_cq_data", "rma",
		"msg", "tagged", "send", "recv", "multi_recv"})
}

// String returns the names of the flags, such as "read|write".
func (f BindFlags) String() string {
	return flagString(f, []string{"read", "write", "transmit", "selective", "remote_read", "remote_write", "recv"})
}

// flagString joins the names of the bits that are set, given by the number of the bit.
// Bits without a name appear as one number at the end; no flags are "none".
func flagString[F ~uint32 | ~uint64](flags F, names []string) string {
	var list []string
	unknown := uint64(0)
	for rest := uint64(flags); rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros64(rest); i < len(names) && names[i] != "" {
			list = append(list, names[i])
		} else {
			unknown |= 1 << i
		}
	}
	switch {
	case unknown != 0:
		list = append(list, fmt.Sprintf("%#x", unknown))
	case list == nil:
		return "none"
	}
	return strings.Join(list, "|")
}
