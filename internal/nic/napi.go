// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
)

// NAPIs are the instances with which the kernel polls the queues of drivers: those of the
// calling thread's network namespace. Each has an id.
type NAPIs interface {
	// Of returns the instance that polls a receive queue.
	Of(ifindex, queue int) (id uint32, err error)
	// Deferral and Defer read and set how long its interrupts are held back.
	Deferral(id uint32) (Deferral, error)
	Defer(id uint32, d Deferral) error
}

// Deferral is how the kernel holds the interrupts of a queue back once a poll has found
// nothing: it polls again after Flush, and lets interrupts in after Polls such polls in
// a row.
type Deferral struct {
	Polls uint32 `json:"defer_hard_irqs"`
	Flush uint64 `json:"gro_flush_timeout"` // ns
}

// Commands and attributes of the netdev family, from the kernel's netdev.h.
const (
	netdevQueueGet = 10 // NETDEV_CMD_QUEUE_GET, Linux 6.8
	netdevNAPIGet  = 11 // NETDEV_CMD_NAPI_GET
	netdevNAPISet  = 14 // NETDEV_CMD_NAPI_SET, Linux 6.13

	queueID      = 1 // NETDEV_A_QUEUE_ID
	queueIfIndex = 2 // NETDEV_A_QUEUE_IFINDEX
	queueType    = 3 // NETDEV_A_QUEUE_TYPE; 0 is one to receive
	queueNAPI    = 4 // NETDEV_A_QUEUE_NAPI_ID
	napiID       = 2 // NETDEV_A_NAPI_ID
	napiPolls    = 5 // NETDEV_A_NAPI_DEFER_HARD_IRQS
	napiFlush    = 6 // NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT
)

// DefersQueues reports whether the kernel can hold back the interrupts of single queues.
func (s *System) DefersQueues() bool { return !kernel.Lacks(s.Kernel, kernel.NAPISettings) }

// KernelNAPIs are those of the running kernel.
var KernelNAPIs NAPIs = kernelNAPIs{}

type kernelNAPIs struct{}

// Of implements NAPIs.
func (kernelNAPIs) Of(ifindex, queue int) (uint32, error) {
	a, err := ask("netdev", netdevQueueGet, word(queueIfIndex, ifindex), word(queueType, 0), word(queueID, queue))
	if err != nil {
		return 0, fmt.Errorf("the NAPI of queue %d: %w", queue, err)
	}
	id := number(a, queueNAPI)
	if id == 0 {
		return 0, fmt.Errorf("the driver tells no NAPI of queue %d: %w", queue, unix.EOPNOTSUPP)
	}
	return id, nil
}

// Deferral implements NAPIs.
func (kernelNAPIs) Deferral(id uint32) (Deferral, error) {
	a, err := ask("netdev", netdevNAPIGet, word(napiID, int(id)))
	if err != nil {
		return Deferral{}, fmt.Errorf("NAPI %d: %w", id, err)
	}
	if a[napiPolls] == nil {
		return Deferral{}, fmt.Errorf("NAPI %d has no settings of its own, which take Linux %v: %w", id,
			kernel.NAPISettings, unix.EOPNOTSUPP)
	}
	return Deferral{number(a, napiPolls), longNumber(a[napiFlush])}, nil
}

// Defer implements NAPIs.
func (kernelNAPIs) Defer(id uint32, d Deferral) error {
	flush := make([]byte, 8)
	binary.NativeEndian.PutUint64(flush, d.Flush)
	if err := tell("netdev", netdevNAPISet, word(napiID, int(id)), word(napiPolls, int(d.Polls)),
		nl.NewRtAttr(napiFlush, flush)); err != nil {
		return fmt.Errorf("setting NAPI %d: %w", id, err)
	}
	return nil
}

// word is an attribute of 32 bits.
func word(attr, v int) *nl.RtAttr { return nl.NewRtAttr(attr, nl.Uint32Attr(uint32(v))) }

// longNumber reads an attribute that the kernel writes with 4 bytes if they are enough,
// and otherwise with 8.
func longNumber(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	case 8:
		return binary.NativeEndian.Uint64(b)
	}
	return 0
}
