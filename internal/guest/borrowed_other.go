// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package guest

import (
	"context"
	"runtime"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
)

// OpenBorrowed refuses to borrow a queue, which takes Linux.
func OpenBorrowed(context.Context, string, string, bool) (node.Device, error) {
	return nil, errno.Refuse(errno.NotImplemented,
		"a daemon and its queues take Linux, this is %s: want no DomainAttr.Borrow",
		runtime.GOOS)
}
