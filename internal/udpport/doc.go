// SPDX-License-Identifier: Apache-2.0

// Package udpport is where frames leave and enter the process by UDP sockets: on any
// system and any interface, without a privilege, and slower than AF_XDP. On
// the wire it is the same as what package port sends with UDP, so nodes of both kinds
// speak with each other.
//
//	Open ── addresses of an interface, or one address ── a socket for each, bound to wire.UDPPort
//	  │
//	  ▼
//	Device ─ Link, Watch, Counters, Close
//	  └─ Queue ─ Receive, Release, Buffer, Send, Flush, Wait, Wake
//
// A [Queue] implements the engine's Port on the medium wire.OnSocket: a packet is a
// frame behind a wire.Way. On Linux it makes one system call a burst: recvmmsg, whose
// messages the kernel may have joined from datagrams of one sender (UDP_GRO), and
// sendmmsg, whose messages the kernel cuts into datagrams (UDP_SEGMENT). On other
// systems, and with Options.Portable, it uses package net.
//
// A frame longer than the path's MTU leaves in fragments, which other UDP sockets join;
// nodes with AF_XDP drop them. The kernel cuts no message of such frames, so they go one
// by one. One socket serves each address: another one of this node,
// by any program, is refused.
package udpport
