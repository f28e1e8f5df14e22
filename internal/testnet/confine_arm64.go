// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

var archDenied = []uint32{unix.SYS_ARCH_SPECIFIC_SYSCALL}
