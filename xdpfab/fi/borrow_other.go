// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package fi

import (
	"context"
	"fmt"
	"runtime"

	"github.com/xdpfab/xdpfab/internal/node"
)

func openBorrowed(context.Context, string, string, bool) (node.Device, error) {
	return nil, fmt.Errorf("a daemon and its queues take Linux, this is %s: want no DomainAttr.Borrow: %w",
		runtime.GOOS, ErrNotImplemented)
}
