// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sharedav

import (
	"context"
	"runtime"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Table is a list of addresses that processes share. There is none but on Linux.
type Table struct{}

// Open fails: the locks of a table take Linux.
func Open(context.Context, string, bool) (*Table, error) {
	return nil, errno.Refuse(errno.NotImplemented,
		"an address vector that processes share takes Linux, this is %s; leave out the name",
		runtime.GOOS)
}

// Append fails, as all methods do but Close.
func (*Table) Append(context.Context, string) (int, error) { return 0, errno.NotImplemented }

// Remove fails.
func (*Table) Remove(context.Context, int) error { return errno.NotImplemented }

// Get fails.
func (*Table) Get(int) (text string, gone bool, err error) { return "", false, errno.NotImplemented }

// Close does nothing.
func (*Table) Close() error { return nil }
