// SPDX-License-Identifier: Apache-2.0

// Package topology holds only tests: the library over each of package testnet's
// topologies, with exact sums. They run on any Linux with root, and by package vm
// in virtual machines without root. The drawings are in package testnet.
package topology
