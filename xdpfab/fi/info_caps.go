// SPDX-License-Identifier: Apache-2.0

package fi

import "fmt"

// Caps are capabilities, after fi_getinfo(3). There are three kinds: a primary capability
// is a kind of operation; a modifier restricts the directions of these; a secondary one
// is a property that comes with them.
type Caps uint32

// The capabilities.
const (
	CapMsg          Caps = 1 << iota // FI_MSG
	CapRMA                           // FI_RMA
	CapTagged                        // FI_TAGGED
	CapAtomic                        // FI_ATOMIC
	CapMulticast                     // FI_MULTICAST
	CapCollective                    // FI_COLLECTIVE
	CapNamedRX                       // FI_NAMED_RX_CTX
	CapDirectedRecv                  // FI_DIRECTED_RECV
	CapVariableMsg                   // FI_VARIABLE_MSG
	CapHMEM                          // FI_HMEM: memory of devices
	CapXPU                           // FI_XPU: operations that devices begin
	CapAVUserID                      // FI_AV_USER_ID
	CapPeer                          // FI_PEER

	CapRead        // FI_READ: begin reads, fetch and compare operations
	CapWrite       // FI_WRITE: begin writes and base operations
	CapSend        // FI_SEND
	CapRecv        // FI_RECV
	CapRemoteRead  // FI_REMOTE_READ: be the target of reads, fetch and compare operations
	CapRemoteWrite // FI_REMOTE_WRITE: be the target of writes and base operations

	CapMultiRecv  // FI_MULTI_RECV
	CapSource     // FI_SOURCE
	CapSourceErr  // FI_SOURCE_ERR
	CapRMAEvent   // FI_RMA_EVENT: completions at the target
	CapRMAPmem    // FI_RMA_PMEM
	CapSharedAV   // FI_SHARED_AV
	CapTrigger    // FI_TRIGGER
	CapFence      // FI_FENCE
	CapLocalComm  // FI_LOCAL_COMM: endpoints of one domain reach each other
	CapRemoteComm // FI_REMOTE_COMM: other nodes are reached

	allCaps = iota // how many there are
)

// The kinds of capabilities.
const (
	PrimaryCaps   = CapRead - 1
	ModifierCaps  = CapMultiRecv - 1 - PrimaryCaps
	SecondaryCaps = 1<<allCaps - 1 - ModifierCaps - PrimaryCaps
)

// What is offered. A capability that becomes real is added here, and to the side of the
// endpoint or to the domain that has it.
const (
	initiatingCaps = CapRead | CapWrite | CapSend
	targetCaps     = CapRemoteRead | CapRemoteWrite | CapRecv
	operationCaps  = CapAtomic | CapRMA | CapMsg | CapTagged
	domainCaps     = CapLocalComm | CapRemoteComm | CapSharedAV | CapAVUserID
	transmitCaps   = operationCaps | initiatingCaps | CapNamedRX | CapFence | CapTrigger
	// of endpoints that peers can address
	eventCaps   = CapRMAEvent | CapSource | CapSourceErr | CapMultiRecv | CapDirectedRecv
	receiveCaps = operationCaps | targetCaps | eventCaps
	offeredCaps = transmitCaps | receiveCaps | domainCaps
)

var capNames = []string{
	"msg", "rma", "tagged", "atomic", "multicast", "collective", "named_rx_ctx", "directed_recv",
	"variable_msg", "hmem",
	"xpu", "av_user_id", "peer", "read", "write", "send", "recv", "remote_read", "remote_write", "multi_recv", "source",
	"source_err", "rma_event", "rma_pmem", "shared_av", "trigger", "fence", "local_comm", "remote_comm",
}

// reasonsOfCaps are the reasons why capabilities are not offered.
var reasonsOfCaps = []struct {
	of  Caps
	why string
}{
	{CapMulticast, "exactly once is a promise between two ends; post to each peer"},
	{CapCollective, "there are no groups of endpoints; build them of atomics and messages"},
	{CapVariableMsg,
		"a receive has the caller's buffer; peek and claim a message to learn its length, and receive it then"},
	{CapHMEM, "operations run on a CPU of the host, which has no atomic instructions on memory of devices"},
	{CapRMAPmem, "nothing is flushed to persistent memory, so no region is durable"},
}

// whyNot returns the reasons why capabilities are not offered, to be appended to an
// error.
func (c Caps) whyNot() (text string) {
	for _, r := range reasonsOfCaps {
		if c&r.of != 0 {
			text += fmt.Sprintf("; %v: %s", r.of, r.why)
		}
	}
	return text
}

// String returns the names of the capabilities, such as "atomic|read".
func (c Caps) String() string { return flagString(uint32(c), capNames...) }

// MarshalText implements encoding.TextMarshaler.
func (c Caps) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// settle returns the capabilities of an endpoint for those that the caller asked for: the
// primary ones alone, if any were named. A caller that names modifiers, and nothing of a
// target, gets an endpoint that peers cannot address. Errors for unknown sources are for
// those alone that name them.
func (c Caps) settle() Caps {
	settled := Caps(offeredCaps) &^ (CapSourceErr &^ c)
	if p := c & PrimaryCaps; p != 0 {
		settled = settled&^PrimaryCaps | p | CapNamedRX | CapAVUserID // which are there whether asked for or not
	}
	if c&ModifierCaps != 0 && c&(targetCaps|eventCaps) == 0 {
		settled &^= targetCaps | eventCaps
	}
	return settled
}
