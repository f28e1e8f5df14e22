// SPDX-License-Identifier: Apache-2.0

package fi

import "fmt"

// Mode is what a provider can ask of its caller, after fi_getinfo(3). xdpfab asks for
// nothing, so that every caller can use it.
type Mode uint32

// The modes.
const (
	ModeContext              Mode = 1 << iota // FI_CONTEXT
	ModeContext2                              // FI_CONTEXT2
	ModeLocalMR                               // FI_LOCAL_MR
	ModeMsgPrefix                             // FI_MSG_PREFIX
	ModeAsyncIOV                              // FI_ASYNC_IOV
	ModeRXCQData                              // FI_RX_CQ_DATA
	ModeRestrictedCompletion                  // FI_RESTRICTED_COMP
	ModeNotifyFlagsOnly                       // FI_NOTIFY_FLAGS_ONLY
	ModeBufferedRecv                          // FI_BUFFERED_RECV
)

// String returns the names of the modes, such as "context|rx_cq_data".
func (m Mode) String() string {
	return flagString(uint32(m), "context", "context2", "local_mr", "msg_prefix", "async_iov", "rx_cq_data",
		"restricted_comp",
		"notify_flags_only", "buffered_recv")
}

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// MRMode is what a provider can ask of its caller when memory is registered, after
// fi_domain(3) and fi_mr(3). xdpfab asks for nothing: how a region is addressed, and who
// chooses its key, is decided for each region by mr.Options. A caller that wants all
// regions of a domain alike sets DomainAttr.MRMode.
type MRMode uint32

// The modes. MRBasic and MRScalable are for hints alone.
const (
	MRBasic      MRMode = 1 << iota // FI_MR_BASIC: MRVirtAddr, MRAllocated and MRProvKey
	MRScalable                      // FI_MR_SCALABLE: none of these
	MRLocal                         // FI_MR_LOCAL: local buffers have to be registered
	MRRaw                           // FI_MR_RAW: keys have more than 64 bits
	MRVirtAddr                      // FI_MR_VIRT_ADDR: peers give virtual addresses
	MRAllocated                     // FI_MR_ALLOCATED: memory needs pages before it is registered
	MRProvKey                       // FI_MR_PROV_KEY: the provider chooses keys
	MRMMUNotify                     // FI_MR_MMU_NOTIFY: the caller tells of changes of page tables
	MRRMAEvent                      // FI_MR_RMA_EVENT: regions with counters have to be enabled
	MREndpoint                      // FI_MR_ENDPOINT: memory is registered for one endpoint
	MRHMEM                          // FI_MR_HMEM: memory of devices has to be registered
	MRCollective                    // FI_MR_COLLECTIVE: so have buffers of collective operations
	MRXPUDesc                       // FI_MR_XPU_DESC: devices need descriptors

	// basicMR is what MRBasic stands for, and what DomainAttr.MRMode can ask for.
	basicMR = MRVirtAddr | MRAllocated | MRProvKey
)

// String returns the names of the modes, such as "virt_addr|prov_key".
func (m MRMode) String() string {
	return flagString(uint32(m), "basic", "scalable", "local", "raw", "virt_addr", "allocated", "prov_key",
		"mmu_notify",
		"rma_event", "endpoint", "hmem", "collective", "xpu_desc")
}

// MarshalText implements encoding.TextMarshaler.
func (m MRMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Order is an order of operations from one endpoint to another, after fi_endpoint(3):
// which operations take effect in the order posted. Reads are remote reads and fetch
// operations without an effect, writes all others, sends messages. The orders without a
// prefix are of RMA and atomics together.
type Order uint32

// The orders.
const (
	OrderRAR       Order = 1 << iota // FI_ORDER_RAR: a read after a read
	OrderRAW                         // FI_ORDER_RAW: a read after a write
	OrderRAS                         // FI_ORDER_RAS: a read after a send
	OrderWAR                         // FI_ORDER_WAR
	OrderWAW                         // FI_ORDER_WAW
	OrderWAS                         // FI_ORDER_WAS
	OrderSAR                         // FI_ORDER_SAR
	OrderSAW                         // FI_ORDER_SAW
	OrderSAS                         // FI_ORDER_SAS
	OrderRMARAR                      // FI_ORDER_RMA_RAR
	OrderRMARAW                      // FI_ORDER_RMA_RAW
	OrderRMAWAR                      // FI_ORDER_RMA_WAR
	OrderRMAWAW                      // FI_ORDER_RMA_WAW
	OrderAtomicRAR                   // FI_ORDER_ATOMIC_RAR
	OrderAtomicRAW                   // FI_ORDER_ATOMIC_RAW
	OrderAtomicWAR                   // FI_ORDER_ATOMIC_WAR
	OrderAtomicWAW                   // FI_ORDER_ATOMIC_WAW

	// OrderNone says that no order is kept; it stands alone. FI_ORDER_NONE is 0, which
	// leaves the choice to the provider, and xdpfab then keeps all orders that it has. So
	// this is a bit of xdpfab's own, for callers that need none: then an operation never
	// waits for a packet that another one has lost. Messages keep OrderSAS even so.
	OrderNone Order = 1 << 31

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
		return fmt.Errorf("order %v: want none alone, or some of %v: %w", o, offeredOrder, ErrNotImplemented)
	}
	return nil
}

// String returns the names of the orders, such as "atomic_rar|atomic_raw".
func (o Order) String() string {
	if o == OrderNone {
		return "none"
	}
	return flagString(uint32(o), "rar", "raw", "ras", "war", "waw", "was", "sar", "saw", "sas",
		"rma_rar", "rma_raw", "rma_war", "rma_waw", "atomic_rar", "atomic_raw", "atomic_war", "atomic_waw")
}

// MarshalText implements encoding.TextMarshaler.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (f OpFlags) MarshalText() ([]byte, error) { return []byte(f.String()), nil }
