// SPDX-License-Identifier: Apache-2.0

package fi

import "fmt"

// Caps are capabilities, after fi_getinfo(3). There are three kinds: a primary capability
// is a kind of operation; a modifier restricts the directions of these; a secondary one
// is a property that comes with them. The numbers are libfabric's. A capability without a
// constant is not offered, and is refused by its name.
type Caps uint64

// The capabilities.
const (
	CapMsg    Caps = 1 << 1 // FI_MSG
	CapRMA    Caps = 1 << 2 // FI_RMA
	CapTagged Caps = 1 << 3 // FI_TAGGED
	CapAtomic Caps = 1 << 4 // FI_ATOMIC

	CapRead        Caps = 1 << 8  // FI_READ: begin reads, fetch and compare operations
	CapWrite       Caps = 1 << 9  // FI_WRITE: begin writes and base operations
	CapRecv        Caps = 1 << 10 // FI_RECV
	CapSend        Caps = 1 << 11 // FI_SEND
	CapRemoteRead  Caps = 1 << 12 // FI_REMOTE_READ: be the target of reads, fetch and compare operations
	CapRemoteWrite Caps = 1 << 13 // FI_REMOTE_WRITE: be the target of writes and base operations

	CapMultiRecv    Caps = 1 << 16 // FI_MULTI_RECV
	CapTrigger      Caps = 1 << 20 // FI_TRIGGER
	CapFence        Caps = 1 << 21 // FI_FENCE
	CapAVUserID     Caps = 1 << 41 // FI_AV_USER_ID
	CapSourceErr    Caps = 1 << 50 // FI_SOURCE_ERR
	CapLocalComm    Caps = 1 << 51 // FI_LOCAL_COMM: endpoints of one domain reach each other
	CapRemoteComm   Caps = 1 << 52 // FI_REMOTE_COMM: other nodes are reached
	CapSharedAV     Caps = 1 << 53 // FI_SHARED_AV
	CapRMAEvent     Caps = 1 << 56 // FI_RMA_EVENT: completions at the target
	CapSource       Caps = 1 << 57 // FI_SOURCE
	CapNamedRX      Caps = 1 << 58 // FI_NAMED_RX_CTX
	CapDirectedRecv Caps = 1 << 59 // FI_DIRECTED_RECV

	primaryCaps  = operationCaps | CapNamedRX | CapDirectedRecv | CapAVUserID
	modifierCaps = initiatingCaps | targetCaps
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

// capNames are libfabric's names of all capabilities, by the number of the bit.
var capNames = []string{
	1: "msg", 2: "rma", 3: "tagged", 4: "atomic", 5: "multicast", 6: "collective", 8: "read", 9: "write", 10: "recv",
	11: "send", 12: "remote_read", 13: "remote_write", 16: "multi_recv", 20: "trigger", 21: "fence",
	41: "av_user_id", 43: "peer", 44: "xpu", 47: "hmem", 48: "variable_msg", 49: "rma_pmem", 50: "source_err",
	51: "local_comm", 52: "remote_comm", 53: "shared_av", 56: "rma_event", 57: "source", 58: "named_rx_ctx",
	59: "directed_recv",
}

// reasonsOfCaps are the reasons why capabilities are not offered.
var reasonsOfCaps = []struct {
	of  Caps
	why string
}{
	{1 << 5, "exactly once is a promise between two ends; post to each peer"},
	{1 << 6, "there are no groups of endpoints; build them of atomics and messages"},
	{1 << 47, "operations run on a CPU of the host, which has no atomic instructions on memory of devices"},
	{1 << 48, "a receive has the caller's buffer; peek and claim a message to learn its length, and receive it then"},
	{1 << 49, "nothing is flushed to persistent memory, so no region is durable"},
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
func (c Caps) String() string { return flagString(c, capNames) }

// MarshalText implements encoding.TextMarshaler.
func (c Caps) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// settle returns the capabilities of an endpoint for those that the caller asked for: the
// primary ones alone, if any were named. A caller that names modifiers, and nothing of a
// target, gets an endpoint that peers cannot address. Errors for unknown sources are for
// those alone that name them.
func (c Caps) settle() Caps {
	settled := Caps(offeredCaps) &^ (CapSourceErr &^ c)
	if p := c & primaryCaps; p != 0 {
		settled = settled&^primaryCaps | p | CapNamedRX | CapAVUserID // which are there whether asked for or not
	}
	if c&modifierCaps != 0 && c&(targetCaps|eventCaps) == 0 {
		settled &^= targetCaps | eventCaps
	}
	return settled
}
