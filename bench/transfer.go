// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "time"

const (
	smallMessage = 8       // bytes
	pageMessage  = 4 << 10 // bytes
	bigAccess    = 1 << 20 // bytes of a write or a read
	messageWin   = 64      // messages that the receiver has given no credit for
	accessBatch  = 8       // writes or reads at a time
)

// MTUs of both interfaces, in bytes.
const (
	standardMTU = 1500
	largeMTU    = 3498 // veth's largest for native XDP in one chunk
)

// writePart is the payload, in bytes, that a write of xdpfab's has in a frame at most:
// without the frame's header and the record's, and a multiple of 8.
func writePart(mtu int) uint64 { return uint64(mtu-58) &^ 7 }

// transferPlan has the contests of messages and of remote memory access.
func transferPlan(t time.Duration) []entry {
	trip := transfer{"trip", smallMessage, 1, t}
	look := transfer{"read", smallMessage, 1, t}
	page := transfer{"stream", pageMessage, messageWin, t}
	write := transfer{"write", bigAccess, accessBatch, t}
	read := transfer{"read", bigAccess, accessBatch, t}
	return []entry{
		{"msg_trip", messageTrips, fabTransfer("xdpfab tagged message, manual, ThreadDomain", trip)},
		{"ucx_msg_trip", messageTrips, ucxTransfer("UCX/TCP tagged message", trip)},
		{"libfabric_msg_trip", messageTrips, libfabricTransfer("libfabric tcp;ofi_rxm tagged message", trip)},
		{"read_trip", messageTrips, fabTransfer("xdpfab read, manual, ThreadDomain", look)},
		{"ucx_read_trip", messageTrips, ucxTransfer("UCX/TCP get", look)},
		{"libfabric_read_trip", messageTrips, libfabricTransfer("libfabric tcp;ofi_rxm read", look)},
		{"msg4k", messageRates, fabTransfer("xdpfab tagged messages, manual, ThreadDomain", page)},
		{"ucx_msg4k", messageRates, ucxTransfer("UCX/TCP tagged messages", page)},
		{"libfabric_msg4k", messageRates, libfabricTransfer("libfabric tcp;ofi_rxm tagged messages", page)},
		{"msg4k_large", messageRates, large(fabTransfer("xdpfab tagged messages, manual, ThreadDomain", page))},
		{"ucx_msg4k_large", messageRates, large(ucxTransfer("UCX/TCP tagged messages", page))},
		{"floor_stream", streams, floorStream("floor: frames one way", writePart(standardMTU), false, t)},
		{"floor_stream_copied", streams,
			floorStream("floor: frames one way, from memory to memory", writePart(standardMTU), true, t)},
		{"write", streams, fabTransfer("xdpfab write, manual, ThreadDomain", write)},
		{"read", streams, fabTransfer("xdpfab read, manual, ThreadDomain", read)},
		{"ucx_write", streams, ucxTransfer("UCX/TCP put", write)},
		{"libfabric_write", streams, libfabricTransfer("libfabric tcp;ofi_rxm write", write)},
		{"ucx_read", streams, ucxTransfer("UCX/TCP get", read)},
		{"libfabric_read", streams, libfabricTransfer("libfabric tcp;ofi_rxm read", read)},
		{"floor_stream_large", streams, large(floorStream("floor: frames one way", writePart(largeMTU), false, t))},
		{"floor_stream_copied_large", streams,
			large(floorStream("floor: frames one way, from memory to memory", writePart(largeMTU), true, t))},
		{"write_large", streams, large(fabTransfer("xdpfab write, manual, ThreadDomain", write))},
		{"ucx_write_large", streams, large(ucxTransfer("UCX/TCP put", write))},
	}
}

// large makes a contest one with the large MTU, and its name says so.
func large(c *contest) *contest { return withMTU(largeMTU, c) }

// transferAims are the aims of messages and of remote memory access. Writes are compared
// with the floor that copies, since bytes that are not copied are not delivered.
func transferAims(m *results) []aim {
	return []aim{
		m.atMost("message of 8 bytes RTT p50, to UCX", p50, "msg_trip", "ucx_msg_trip", 0.6).
			because("the aim of a fetch-add, a receive, and two more completions"),
		m.atLeast("messages of 4 KiB, to UCX", rate, "msg4k", "ucx_msg4k", 1.5).
			because("a message is three frames, and TCP passes 64 KiB as one packet"),
		m.atLeast("the same, MTU 3498", rate, "msg4k_large", "ucx_msg4k_large", 2.5).
			because("a message is two frames"),
		m.atLeast("writes of 1 MiB: payload, to the floor that copies", goodput, "write", "floor_stream_copied", 0.78).
			because("xdpfab's work takes 0.55 µs a frame, and the kernel's 1.7"),
		m.atLeast("the same, MTU 3498", goodput, "write_large", "floor_stream_copied_large", 0.95).
			because("a longer frame costs xdpfab no more records or acks"),
	}
}
