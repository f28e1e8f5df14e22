// SPDX-License-Identifier: Apache-2.0

// Package capture copies the packets of engines, for people who want to see them: where
// an XDP program takes packets, tcpdump does not see them. Each engine copies into a ring
// of its own, which is bounded: a packet that finds no room is counted and left out, and
// an engine never waits. One goroutine takes the packets out and writes them to the
// client of the daemon's control socket, which reads them with [Reader]. Packets of one
// engine are in the order of time. Those of several are within one look at the rings.
package capture
