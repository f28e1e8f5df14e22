// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
)

// Lender is a device that may have queues to lend; see port.Interface.
type Lender interface {
	Lend() (*port.Loan, error)
	Spares() []port.LendableQueue
	// Inherited is for a takeover.
	Inherited(queue int) (*port.Loan, error)
}

// OtherQueues implements neighboured.
func (i NetInterface) OtherQueues(n *Node, c *engine.Config) {
	if len(i.Spares()) > 0 {
		c.Elsewhere, c.Outside = n.elsewhere, n.outside
	}
}
