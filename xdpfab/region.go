// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
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
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	return d.node.register(m, o)
}

// register is Register with d.node.mu held.
func (n *Node) register(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	if err := n.open(); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("xdpfab: register: the memory is nil: want one that package mr returned: %w", errno.Length)
	}
	if n.config.ProvKey {
		o.Key = nil // the domain chooses; fi_mr(3) has the requested key ignored
	}
	if len(o.AuthKey) == 0 {
		o.AuthKey = n.config.AuthKey
	}
	o.AuthKey = bytes.Clone(o.AuthKey)
	o.Virtual = o.Virtual || n.config.VirtAddr
	if err := n.dev.offers(m.Kind()); err != nil {
		return nil, fmt.Errorf("xdpfab: register: %w", err)
	}
	register := n.registerServed
	if m.Kind() == mr.KindResident {
		register = n.residents.register
	}
	r, err := register(m, o)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	return r, nil
}

// registerServed is register for memory that is not resident. The host of a domain that
// has one serves the region until it is closed, also while this process sleeps.
func (n *Node) registerServed(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	var r *mr.Region
	offered, then := false, o.Withdrawn
	o.Withdrawn = func() {
		if offered {
			n.dev.withdraw(r.Key())
		}
		if then != nil {
			then()
		}
	}
	r, err := n.table.Register(m, o)
	if err != nil {
		return nil, err
	}
	if err := n.dev.register(r, m, o); err != nil {
		return nil, errors.Join(fmt.Errorf("register: %w", err), r.Close())
	}
	offered = true
	return r, nil
}

// NewRegion allocates zeroed memory of size bytes, on huge pages when there are any, and
// registers it under a name with all rights. It is freed when the domain closes.
func (d *Domain) NewRegion(name string, size int) (*mr.Region, error) {
	m, err := d.node.allocate(name, size)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: region %q: %w", name, err)
	}
	defer d.stay()()
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	return d.node.registerOwned(m, name, size)
}

// registerOwned registers memory that the domain frees when it closes. d.node.mu is held.
func (n *Node) registerOwned(m *mr.Memory, name string, size int) (*mr.Region, error) {
	r, err := n.register(m, mr.Options{Name: name, Length: size, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	n.owned = append(n.owned, m)
	return r, nil
}

// allocate returns memory for a region.
func (n *Node) allocate(name string, size int) (*mr.Memory, error) {
	return n.dev.memory(name, size)
}

// closeRegions deregisters all regions and frees the memory that NewRegion allocated.
func (n *Node) closeRegions() error {
	n.mu.Lock()
	owned := n.owned
	n.owned = nil
	n.mu.Unlock()
	var errs []error
	for _, r := range n.table.All() {
		errs = append(errs, r.Close())
	}
	for _, m := range owned {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
