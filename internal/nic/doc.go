// SPDX-License-Identifier: Apache-2.0

// Package nic inspects network interfaces, and the machine, before xdpfab uses
// one: which queues there are, which XDP modes, what is attached already, what
// is missing. It changes nothing, attaches nothing, and needs no privilege for
// most of it; properties that could not be determined are marked as unknown.
//
//	kernel, driver ── Inspect ─▶ Interface ─┐
//	                                        ├─ System.Plan ─▶ Plan ─┬─ Err: port.Open refuses
//	kernel, caller ── Machine ─▶ System ────┘                       └─ Problems, Notes: xdpfab info
//
// Only Plan has the rules by which an interface is admitted, so that `xdpfab
// info` says exactly what opening the interface would do.
//
// Sources: rtnetlink(7); Documentation/netlink/specs/netdev.yaml and ethtool.yaml of
// the Linux kernel. The settings of a driver are read by netlink here and not by
// github.com/safchain/ethtool, because that module passes addresses of Go variables
// to the kernel as plain integers, which are wrong once the stack has moved
// (unsafe.Pointer, rule 4).
package nic
