// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/node"
)

func openBorrowed(ctx context.Context, ifname, path string, chosen bool) (node.Device, error) {
	return guest.OpenBorrowed(ctx, ifname, path, chosen)
}
