// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

var archDenied = []uint32{
	unix.SYS_AFS_SYSCALL, unix.SYS_CREATE_MODULE, unix.SYS_GETPMSG, unix.SYS_GET_KERNEL_SYMS, unix.SYS_IOPERM,
	unix.SYS_IOPL, unix.SYS_PUTPMSG, unix.SYS_QUERY_MODULE, unix.SYS_SECURITY, unix.SYS_SYSFS, unix.SYS_TUXCALL,
	unix.SYS_UPROBE, unix.SYS_URETPROBE, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_VSERVER, unix.SYS__SYSCTL,
}
