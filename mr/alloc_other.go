// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mr

import (
	"os"
	"runtime"
	"syscall"
)

// Alloc returns zeroed memory of the given size in bytes, from the Go heap, with whose
// kind. The size is rounded up to whole pages. The error wraps ErrSize, or ErrMemory
// for HugeRequire, which takes Linux.
func Alloc(size int, o AllocOptions) (*Memory, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if o.Huge == HugeRequire {
		return nil, linuxOnly("reserved huge pages", "HugeAuto")
	}
	return Adopt(make([]byte, roundUp(size, os.Getpagesize()))) // of whole pages, so it begins with one
}

// Memfd takes Linux; the error wraps ErrMemory.
func Memfd(string, int) (*Memory, error) { return nil, linuxOnly("a memfd", "Alloc") }

// Shared takes Linux; the error wraps ErrMemory.
func Shared(int, int) (*Memory, error) { return nil, linuxOnly("memory of another process", "Alloc") }

// File takes Linux; the error wraps ErrMemory.
func File(string, int) (*Memory, error) { return nil, linuxOnly("a file as memory", "Alloc") }

func linuxOnly(what, instead string) error {
	return failed("%w: %s takes Linux, this is %s; use %s: %w", ErrMemory, what, runtime.GOOS, instead,
		syscall.ENOTSUP)
}
