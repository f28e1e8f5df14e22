// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"time"
)

// MTUs of both interfaces, in bytes.
const (
	jumboMTU   = 9000  // that of storage and HPC networks: a frame takes three chunks
	longestMTU = 65518 // xdpfab's largest: as much as TCP hands to a veth as one packet
)

// jumboPlan has contests of messages and of remote memory access with jumbo frames.
func jumboPlan(t time.Duration) []entry {
	page := transfer{"stream", pageMessage, messageWin, t}
	write := transfer{"write", bigAccess, accessBatch, t}
	return []entry{
		{"msg4k_jumbo", messageRates,
			withMTU(jumboMTU, fabTransfer("xdpfab tagged messages, manual, ThreadDomain", page))},
		{"ucx_msg4k_jumbo", messageRates, withMTU(jumboMTU, ucxTransfer("UCX/TCP tagged messages", page))},
		{"floor_stream_jumbo", streams,
			withMTU(jumboMTU, floorStream("floor: frames one way", writePart(jumboMTU), false, t))},
		{"floor_stream_copied_jumbo", streams, withMTU(jumboMTU,
			floorStream("floor: frames one way, from memory to memory", writePart(jumboMTU), true, t))},
		{"write_jumbo", streams, withMTU(jumboMTU, fabTransfer("xdpfab write, manual, ThreadDomain", write))},
		{"ucx_write_jumbo", streams, withMTU(jumboMTU, ucxTransfer("UCX/TCP put", write))},
		{"libfabric_write_jumbo", streams, withMTU(jumboMTU, libfabricTransfer("libfabric tcp;ofi_rxm write", write))},
		{"write_longest", streams, withMTU(longestMTU, fabTransfer("xdpfab write, manual, ThreadDomain", write))},
		{"ucx_write_longest", streams, withMTU(longestMTU, ucxTransfer("UCX/TCP put", write))},
		{"libfabric_write_longest", streams,
			withMTU(longestMTU, libfabricTransfer("libfabric tcp;ofi_rxm write", write))},
	}
}

// withMTU makes a contest one with such an MTU, and its name says so.
func withMTU(mtu int, c *contest) *contest {
	c.mtu = mtu
	c.name += fmt.Sprintf(", MTU %d", mtu)
	return c
}

// jumboAims are the aims of messages and of remote memory access with jumbo frames.
func jumboAims(m *results) []aim {
	return []aim{
		m.atLeast("messages of 4 KiB, MTU 9000, to UCX", rate, "msg4k_jumbo", "ucx_msg4k_jumbo", 3).
			because("a message is one frame"),
		m.atLeast("writes of 1 MiB, MTU 9000: payload, to the floor that copies", goodput, "write_jumbo",
			"floor_stream_copied_jumbo", 0.9).
			because("xdpfab adds a checksum and one copy"),
		m.atLeast("the same, to UCX", goodput, "write_jumbo", "ucx_write_jumbo", 2).
			because("the kernel's work a frame is that of MTU 1500, for six times the bytes"),
		m.atLeast("the same, to libfabric's TCP", goodput, "write_jumbo", "libfabric_write_jumbo", 0.9).
			because("veth takes 64 KiB of TCP as one packet, which a NIC would not"),
	}
}
