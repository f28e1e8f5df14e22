// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file has everything in this package that the type system cannot check:
// views of mapped memory, and socket options that are structs.

// Layouts fixed by the kernel (include/uapi/linux/if_xdp.h).
var (
	_ [16]byte = [unsafe.Sizeof(Desc{})]byte{}
	_ [8]byte  = [unsafe.Offsetof(Desc{}.Len)]byte{}
	_ [48]byte = [unsafe.Sizeof(Statistics{})]byte{}
)

// ringView interprets a mapped ring. The mapping is page aligned and as long as
// off.Desc plus n entries; the kernel aligns the offsets.
func ringView[T any](mem []byte, off unix.XDPRingOffset, n int) shared[T] {
	base := unsafe.Pointer(unsafe.SliceData(mem))
	return shared[T]{
		producer: (*uint32)(unsafe.Add(base, off.Producer)),
		consumer: (*uint32)(unsafe.Add(base, off.Consumer)),
		flags:    (*uint32)(unsafe.Add(base, off.Flags)),
		entries:  unsafe.Slice((*T)(unsafe.Add(base, off.Desc)), n),
	}
}

// entrySize is the size of a ring's entry in bytes.
func entrySize[T any]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// address returns the address of mapped memory as a number, which the kernel
// expects.
func address(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// setOption sets a socket option that is a struct.
func setOption[T any](fd, level, name int, v *T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(v)), unsafe.Sizeof(*v), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// option reads a socket option that is a struct, and returns how many of its
// bytes the kernel filled in: older kernels know shorter structs.
func option[T any](fd, level, name int, v *T) (int, error) {
	size := uint32(unsafe.Sizeof(*v))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(v)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(size), nil
}
