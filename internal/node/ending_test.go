// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A node that ends closes its endpoints first. Peers that come then hear that the node
// ends, and not that it never had the endpoint.
func TestEndingNodeSaysSo(t *testing.T) {
	n := New(nil, nil)
	for _, want := range []wire.HelloStatus{wire.HelloNoEndpoint, wire.HelloShuttingDown} {
		if got := n.accept(7, 1); got != want {
			t.Errorf("a session: %v, want %v", got, want)
		}
		if got, _ := n.requested(7, nil, wire.Addr{}); got != want {
			t.Errorf("a connection: %v, want %v", got, want)
		}
		n.End.Set(errno.Closed)
	}
}
