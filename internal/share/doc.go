// SPDX-License-Identifier: Apache-2.0

// Package share is what a program and the process that has the interface have in common:
// the program is the guest, the other the host. The guest posts operations into a ring in
// shared memory, and the host, whose engine takes them from there to their targets,
// writes completions into another ring.
//
//	guest: engine ─▶ GuestRing ─▶ submission ring ─▶ HostRing ─▶ engine :host
//	guest: engine ◀─ GuestRing ◀─ completion ring ◀─ HostRing ◀─ engine :host
//
// Rings and operands lie in one memfd, the segment, which the guest makes and seals. The
// host trusts nothing in it: it has its own copy of the sizes, reads each entry once,
// checks it, and keeps the positions of both rings to itself. A guest that writes
// nonsense gets nonsense, or is turned out; see HostRing. include/xdpfab/ring.h describes
// the segment for C.
package share
