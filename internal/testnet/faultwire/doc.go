// SPDX-License-Identifier: Apache-2.0

// Package faultwire is a cable that misbehaves on purpose. It joins two network
// namespaces, A and B, through user space, so that the frames that real AF_XDP
// sockets send on real interfaces suffer loss, delay, corruption and partition:
//
//	namespace A          the wire, in this process          namespace B
//	┌──────────┐   ┌───────────────────────────────────┐   ┌──────────┐
//	│    veth0 ├───┤ AF_XDP ─▶ faults, delays ─▶ AF_XDP ├───┤ veth0    │
//	└──────────┘   └───────────────────────────────────┘   └──────────┘
//
// (Frames of AF_XDP sockets on veth pass no queueing discipline, so netem could
// not do it.) Every frame of either side, ARP included, is redirected to the
// wire's socket, goes through the faults of its direction, and leaves by the other
// socket. Faults can be changed at any time with [Wire.Set]; everything that the
// wire does is counted, see [Event].
//
// One goroutine moves all frames; it sleeps in poll(2) when there are none. Its
// decisions come from a seeded generator, so a run can be repeated as far as the
// nodes send the same frames. Memory is bounded: a full delay queue drops.
//
// Frames that the kernel's UDP and TCP send over a veth lack their checksum
// (offloading, which a redirect does not make up for): such traffic does not
// survive the wire. ARP, neighbour discovery, ICMP and xdpfab's frames do.
//
// It is for tests only.
package faultwire
