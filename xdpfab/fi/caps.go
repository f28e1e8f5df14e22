// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
)

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

// MRMode is what a provider can ask of its caller when memory is registered, after
// fi_domain(3) and fi_mr(3). xdpfab asks for nothing: how a region is addressed, and who
// chooses its key, is decided for each region by mr.Options. A caller that wants all
// regions of a domain alike sets DomainAttr.MRMode.
//
// The numbers are libfabric's. Hints may have any of them; those without a constant
// change nothing, since xdpfab never asks for them.
type MRMode uint32

// The modes.
const (
	// MRBasic is for hints alone: MRVirtAddr, MRAllocated and MRProvKey (FI_MR_BASIC).
	MRBasic     MRMode = 1 << 0
	MRVirtAddr  MRMode = 1 << 4 // FI_MR_VIRT_ADDR: peers give virtual addresses
	MRAllocated MRMode = 1 << 5 // FI_MR_ALLOCATED: memory needs pages before it is registered
	MRProvKey   MRMode = 1 << 6 // FI_MR_PROV_KEY: the provider chooses keys

	mrScalable MRMode = 1 << 1 // FI_MR_SCALABLE: none of these, which is also what 0 means
	// basicMR is what MRBasic stands for, and what DomainAttr.MRMode can ask for.
	basicMR = MRVirtAddr | MRAllocated | MRProvKey
)

var mrModeNames = []string{"basic", "scalable", "local", "raw", "virt_addr", "allocated", "prov_key", "mmu_notify",
	"rma_event", "endpoint", "hmem", "collective", "xpu_desc"}

// String returns the names of the modes, such as "virt_addr|prov_key".
func (m MRMode) String() string { return flagString(m, mrModeNames) }

// MarshalText implements encoding.TextMarshaler.
func (m MRMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Order is an order of operations from one endpoint to another, after fi_endpoint(3):
// which operations take effect in the order posted. Reads are remote reads and fetch
// operations without an effect, writes all others, sends messages. The orders without a
// prefix are of RMA and atomics together. The numbers are libfabric's.
type Order uint64

// The orders.
const (
	OrderRAR Order = 1 << iota // FI_ORDER_RAR: a read after a read
	OrderRAW                   // FI_ORDER_RAW: a read after a write
	OrderRAS                   // FI_ORDER_RAS: a read after a send
	OrderWAR                   // FI_ORDER_WAR
	OrderWAW                   // FI_ORDER_WAW
	OrderWAS                   // FI_ORDER_WAS
	OrderSAR                   // FI_ORDER_SAR
	OrderSAW                   // FI_ORDER_SAW
	OrderSAS                   // FI_ORDER_SAS

	OrderRMARAR    Order = 1 << 32 // FI_ORDER_RMA_RAR
	OrderRMARAW    Order = 1 << 33 // FI_ORDER_RMA_RAW
	OrderRMAWAR    Order = 1 << 34 // FI_ORDER_RMA_WAR
	OrderRMAWAW    Order = 1 << 35 // FI_ORDER_RMA_WAW
	OrderAtomicRAR Order = 1 << 36 // FI_ORDER_ATOMIC_RAR
	OrderAtomicRAW Order = 1 << 37 // FI_ORDER_ATOMIC_RAW
	OrderAtomicWAR Order = 1 << 38 // FI_ORDER_ATOMIC_WAR
	OrderAtomicWAW Order = 1 << 39 // FI_ORDER_ATOMIC_WAW

	// OrderNone means that no order is kept; it stands alone. FI_ORDER_NONE is 0, which
	// leaves the choice to the provider, and xdpfab then keeps all orders that it has. So
	// this is a bit of xdpfab's own, for callers that need none: then an operation never
	// waits for a packet that another one has lost. Messages keep OrderSAS even so.
	OrderNone Order = 1 << 63

	// offeredOrder is what holds unless the caller asks for OrderNone: operations of one
	// endpoint to one peer apply in the order posted, whatever their size.
	offeredOrder = OrderRAR | OrderRAW | OrderRAS | OrderWAR | OrderWAW | OrderWAS | OrderSAR | OrderSAW | OrderSAS |
		OrderRMARAR | OrderRMARAW | OrderRMAWAR | OrderRMAWAW |
		OrderAtomicRAR | OrderAtomicRAW | OrderAtomicWAR | OrderAtomicWAW
)

// settle returns the order that is kept for one that is asked for: all or none.
func (o Order) settle() Order {
	if o == OrderNone {
		return OrderNone
	}
	return offeredOrder
}

// check returns an error unless the order can be asked for.
func (o Order) check() error {
	if o != OrderNone && o&^offeredOrder != 0 {
		return errno.Refuse(ErrNotImplemented, "order %v: want none alone, or some of %v", o, offeredOrder)
	}
	return nil
}

var orderNames = []string{"rar", "raw", "ras", "war", "waw", "was", "sar", "saw", "sas", 32: "rma_rar", "rma_raw",
	"rma_war", "rma_waw", "atomic_rar", "atomic_raw", "atomic_war", "atomic_waw"}

// String returns the names of the orders, such as "atomic_rar|atomic_raw".
func (o Order) String() string {
	if o == OrderNone {
		return "none"
	}
	return flagString(o, orderNames)
}

// MarshalText implements encoding.TextMarshaler.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }
