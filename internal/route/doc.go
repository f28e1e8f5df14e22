// SPDX-License-Identifier: Apache-2.0

// Package route finds out where a packet to an IP address has to go first: the MAC
// address of the next hop and the source address to use. A [Resolver] is asked
// before the first frame to a peer; afterwards frames bypass the kernel. So a
// [Monitor] tells when links, addresses, routes or neighbours change; then the
// Resolver is asked again, by methods that do not wait.
//
// The kernel's own tables decide, over rtnetlink(7): routes, addresses and
// neighbours. If a neighbour is not known, the kernel is made to ask for it (ARP,
// or neighbour discovery), since only the kernel sees the answers: the XDP
// program passes them on.
//
// A port of a bridge or a slave of a bond has usually no address: that is of the bridge
// or the bond. Addresses, routes and neighbours of the interfaces above ([Upper]) count
// as the interface's own, as long as packets to them come to its MAC address.
package route
