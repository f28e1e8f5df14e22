// SPDX-License-Identifier: Apache-2.0

// Package route finds out where a packet to an IP address has to go first: the
// MAC address of the next hop and the source address to use. It is asked once for
// each peer, before the first frame; afterwards frames pass the kernel by.
//
// The kernel's own tables decide, over rtnetlink(7): routes, addresses and
// neighbours. Where the neighbour is not known the kernel is made to ask for it
// (ARP, or neighbour discovery), since it alone sees the answers: the XDP program
// leaves them to it.
package route
