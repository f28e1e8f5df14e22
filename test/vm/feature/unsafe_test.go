// SPDX-License-Identifier: Apache-2.0

//go:build linux

package feature

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// bpf is the system call bpf(2), which returns a file descriptor here.
func bpf[T any](command uintptr, attr *T) (fd int, err error) {
	r, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// address returns the address of a slice's memory, for an attribute of bpf(2).
func address[T any](s []T) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

// mmapOffsetsLen asks for the length of struct xdp_mmap_offsets, in bytes: kernels
// whose rings have no flags, and so no need-wakeup, return a shorter one.
func mmapOffsetsLen(fd int) (int, error) {
	var b [256]byte
	n := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&b)), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// registerUMEM gives memory to a socket as its UMEM, of chunks of 2048 bytes.
func registerUMEM(fd int, memory []byte) error {
	reg := unix.XDPUmemReg{Addr: address(memory), Len: uint64(len(memory)), Size: 2048}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&reg)), 24, 0) // 24 bytes: without the flags, which came later
	if errno != 0 {
		return errno
	}
	return nil
}
