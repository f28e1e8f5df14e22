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
// Nothing here touches an interface or a namespace that it did not create, and
// addresses never clash because each pair is private to its own namespaces.
// Tests use it by way of the parent package; the demo command uses it directly,
// which is why it does not import testing.
package veth
