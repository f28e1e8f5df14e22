// SPDX-License-Identifier: Apache-2.0

package mr

import "github.com/xdpfab/xdpfab/internal/errno"

// A program that has not looked at the error of the call that makes a region or a memory
// has none, which is nil. Methods of its owner then fail with ErrClosed, and those that
// return no error return zero values.

func errNone(what, makes string) error {
	return errno.Refuse(ErrClosed, "xdpfab: the %s is nil or a zero value: want one of %s, whose error says why there "+
		"is none", what, makes)
}

// none reports whether the region is none.
func (r *Region) none() bool { return r == nil || r.table == nil }

func (r *Region) errNone() error { return errNone("Region", "Domain.NewRegion or Domain.Register") }

// errNone returns an error if the memory is none.
func (m *Memory) errNone() error {
	if m == nil {
		return errNone("Memory", "Alloc, Memfd, File or Adopt")
	}
	return nil
}
