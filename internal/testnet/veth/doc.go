// SPDX-License-Identifier: Apache-2.0

// Package veth builds the smallest real network: two network namespaces
// joined by one veth pair, a node at each end.
//
//	┌ namespace xf<pid>-<n>-a ┐        ┌ namespace xf<pid>-<n>-b ┐
//	│ lo                      │        │                      lo │
//	│ veth0 10.77.0.1/24      ├────────┤ veth0 10.77.0.2/24      │
//	│       fd00:77::1/64     │        │       fd00:77::2/64     │
//	└─────────────────────────┘        └─────────────────────────┘
//
// There are two more topologies: a star, and two subnets with a router between
// them.
//
//	s0 veth0 ─┐ ┌ hub ───────┐ ┌─ veth0 s2     a veth0 ── left ┌ router ┐ right ── veth0 b
//	          ├─┤ bridge     ├─┤               10.77.0.1   .254 └────────┘ .254   10.78.0.1
//	s1 veth0 ─┘ └────────────┘ └─ veth0 s3
//
// Side.Tag puts a side on a VLAN: veth0.77 above veth0.
//
// Nothing here touches an interface or a namespace that it did not create, and
// addresses never clash because each pair is private to its own namespaces. If
// the process is killed before Close, a guard process removes the namespaces.
// Tests use this package through the parent package; the demo command uses it
// directly, which is why it does not import testing.
package veth
