// SPDX-License-Identifier: Apache-2.0

// Package nic looks at network interfaces, and at the machine, with the eyes of
// somebody who is about to put one to use: which queues, which XDP, what is
// attached already, what is missing. It changes nothing, attaches nothing, and
// needs no privilege for most of it; what could not be found out says so.
//
// It takes no part in the journey of an operation. It explains, before the first
// frame, how package port would start it.
//
// Sources: rtnetlink(7); Documentation/netlink/specs/netdev.yaml and ethtool.yaml
// of the Linux kernel.
package nic
