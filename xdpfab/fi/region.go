// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/mr"
)

// Register lets peers address memory (fi_mr_reg): all of m or the part that the
// options name, by a key that is chosen by the user or, unguessable, by the
// provider. A region with a name is published: peers find key and size with
// Peer.Lookup. Closing the region deregisters it; the domain's CloseAll does so too.
//
// Operations of the node's own code on the bytes by sync/atomic are atomic against those
// of peers, element by element. So are operations of another process on the same memory,
// except on elements of 32 bytes and complex ones that are not aligned to their whole
// size: those are exclusive within one process only.
func (d *Domain) Register(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	defer d.stay()()
	d.node.Mu.Lock()
	defer d.node.Mu.Unlock()
	return d.node.Register(m, o)
}

// NewRegion allocates zeroed memory of size bytes, on huge pages when there are any, and
// registers it under a name with all rights. It is freed when the domain closes.
func (d *Domain) NewRegion(name string, size int) (*mr.Region, error) {
	m, err := d.node.Allocate(name, size)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: region %q: %w", name, err)
	}
	defer d.stay()()
	d.node.Mu.Lock()
	defer d.node.Mu.Unlock()
	return d.node.RegisterOwned(m, name, size)
}
