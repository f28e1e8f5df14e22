// SPDX-License-Identifier: Apache-2.0

// Package xsk is AF_XDP for Go: sockets that exchange raw Ethernet frames with
// one queue of a network interface through shared memory, past the kernel's
// network stack. It depends only on golang.org/x/sys/unix; loading an XDP
// program and filling an XSKMAP is left to an eBPF library.
//
// # The life of a buffer
//
// All frames live in a [UMEM], one block of memory cut into equal chunks. A chunk
// is named by its address, the offset in bytes from the block's start. Four rings
// carry addresses between this process and the kernel; nothing is ever copied
// between them, only ownership moves:
//
//	          process                            kernel
//	receive   Fill producer   ──── address ───▶  takes a chunk, writes a frame
//	          RX consumer     ◀─── Desc ───────  hands it over
//	          … reads [UMEM.Frame], then gives the address to Fill again
//
//	send      TX producer     ──── Desc ──────▶  reads the frame, sends it
//	          Completion      ◀─── address ────  gives the chunk back
//	          … [FramePool] returns it to the free chunks
//
// Fill and TX are of type [Producer], RX and Completion of type [Consumer]; both
// work in bursts with one shared-memory store for each. [Socket.Kick] tells the
// kernel about new TX entries, [Socket.WakeRX] about new Fill entries, where it
// has to be told. [Socket.Poll] sleeps until frames arrive.
//
// Receive addresses point past the headroom, not at the start of the chunk; any
// address within a chunk is good for giving that chunk back.
//
// # Frames reach a socket by an XDP program
//
// A socket receives only what an XDP program on its interface redirects to it
// with bpf_redirect_map and a BPF_MAP_TYPE_XSKMAP. The map takes [Socket.FD]. Its
// index is the program's choice, but an entry must be a socket bound to the very
// queue on which the frame arrived; the kernel drops the frame otherwise.
//
// Two properties have "native" and "slow" forms and they are separate. Zero-copy
// or copy belongs to the socket, and [Socket.Mode] reports which one the kernel
// chose. Driver ("native") or generic mode belongs to the attachment of the
// program: `ip -d link show dev IF` prints xdp or xdpgeneric, and with
// github.com/cilium/ebpf one asks for the former with link.XDPOptions{Flags:
// link.XDPDriverMode}, which fails where the driver has no native mode. Copy mode
// on a driver-mode program is common (veth) and fast; generic mode allocates a
// socket buffer for each frame first.
//
// # Sharing
//
// One UMEM may serve many sockets: open the first with [Config.UMEM], the others
// with [Config.Shared]. On the same interface and queue they share one Fill and
// one Completion ring, those of the first. On another queue or interface a socket
// gets a pair of its own. The rings are returned by Fill and Completion alike, and
// a completion ring shared by sockets returns the frames of all of them, which is
// why a [FramePool] belongs to a completion ring and not to a socket.
//
// # Another process
//
// A socket that is bound can be passed on, with the memfd of its UMEM
// ([UMEMConfig.Share]), to a process that has no privilege: [AdoptUMEM] and [Adopt] make
// a UMEM and a Socket of the two descriptors. One process at a time may use the rings.
// Which chunks are in them is for the two to agree.
//
// # Threads
//
// Rings are single-producer, single-consumer. Each ring has one owner thread (or
// goroutine): no method of a ring, of a FramePool, and none of Socket's Kick,
// WakeRX and Poll may run at the same time as another on the same object. Rings
// shared between sockets must have one owner too. A UMEM's methods, Statistics
// and the accessors are safe from anywhere. Close must not run while the owner
// uses the socket; afterwards its rings are empty and Kick reports ErrClosed.
//
// None of the methods used for each burst allocates or takes a lock.
//
// # Kernel versions
//
// Linux 5.4 is required (ring flags). 5.10 brings Shared across queues, 5.11 busy
// polling, 6.4 Adopt, 6.6 MultiBuffer, 6.17 TXBudget, 6.18 correct completion addresses
// for sockets that share a queue in copy mode; FramePool copes with older kernels.
//
// Sources: Documentation/networking/af_xdp.rst and net/xdp/ of the Linux kernel.
package xsk
