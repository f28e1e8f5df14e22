// SPDX-License-Identifier: Apache-2.0

// Package nic looks at network interfaces, and at the machine, with the eyes of
// somebody who is about to put one to use: which queues, which XDP, what is
// attached already, what is missing. It changes nothing, attaches nothing, and
// needs no privilege for most of it; what could not be found out says so.
//
//	kernel, driver ── Inspect ─▶ Interface ─┐
//	                                        ├─ System.Plan ─▶ Plan ─┬─ Err: port.Open refuses
//	kernel, caller ── Machine ─▶ System ────┘                       └─ Problems, Notes: xdpfab info
//
// The rules by which an interface is admitted are in Plan alone, so what `xdpfab
// info` says is what opening the interface does.
//
// Sources: rtnetlink(7); Documentation/netlink/specs/netdev.yaml and ethtool.yaml
// of the Linux kernel. The settings of a driver are read by netlink here and not by
// github.com/safchain/ethtool, as that gives the kernel addresses of Go variables as
// plain integers, which are wrong once the stack has moved (unsafe.Pointer, rule 4).
package nic
