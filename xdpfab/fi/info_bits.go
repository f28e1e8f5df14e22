// SPDX-License-Identifier: Apache-2.0

package fi

import "fmt"

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

	// OrderNone says that no order is kept; it stands alone. FI_ORDER_NONE is 0, which
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
		return fmt.Errorf("order %v: want none alone, or some of %v: %w", o, offeredOrder, ErrNotImplemented)
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
