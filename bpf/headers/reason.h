/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why a packet was decided about as it was. The steering program counts each packet under
 * one of these, or the executor does that it calls.
 */
#pragma once

/* Shared with reason.go, which must name them in this order. The range decides
 * what happens to the packet: up to REASON_PASS_ADDR it passes, up to
 * REASON_DROP_NO_SOCKET it is dropped. */
enum reason {
	REASON_PASS_OTHER, /* not an xdpfab encapsulation */
	REASON_PASS_OPTIONS, /* UDP behind IPv4 options: we never send those */
	REASON_PASS_FRAGMENT, /* a fragment of UDP over IPv4: likewise */
	REASON_PASS_MAC, /* ours by protocol, for another MAC or a group */
	REASON_PASS_VLAN, /* ours by protocol, of another VLAN */
	REASON_PASS_ADDR, /* our UDP port at an IP address that is not ours */
	REASON_DROP_UDP_LENGTH, /* IP and UDP length disagree, or exceed the packet */
	REASON_DROP_SHORT, /* frame below 46 bytes */
	REASON_DROP_LONG, /* larger than the MTU */
	REASON_DROP_VERSION, /* not version 1 */
	REASON_DROP_TYPE, /* type 0, which does not exist */
	REASON_DROP_NO_SOCKET, /* well formed, but no socket serves its lane */
	REASON_REDIRECT, /* handed to a socket */
	REASON_EXECUTED, /* a frame of a resident session: the executor dealt with it */
	REASON_DROP_SOURCE, /* from an address to which no answer can go: dropped, too */
	NUM_REASONS,
};
