// SPDX-License-Identifier: Apache-2.0

package mr

// Extent is a part of a region as a peer names it (struct fi_rma_ioc of fi_atomic(3)).
type Extent struct {
	Offset uint64 // bytes, or a virtual address for a region registered with Virtual
	Key    uint64
	Count  uint32 // elements, at least one
}
