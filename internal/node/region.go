// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Register is Register with d.node.mu held.
func (n *Node) Register(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	if err := n.Open(); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errno.Refuse(errno.Argument,
			"xdpfab: register: the memory is nil: want one that package mr returned")
	}
	if n.Config.ProvKey {
		o.Key = nil // the domain chooses; fi_mr(3) has the requested key ignored
	}
	if len(o.AuthKey) == 0 {
		o.AuthKey = n.Config.AuthKey
	}
	o.AuthKey = bytes.Clone(o.AuthKey)
	o.Virtual = o.Virtual || n.Config.VirtAddr
	if err := n.Dev.Offers(m.Kind()); err != nil {
		return nil, fmt.Errorf("xdpfab: register: %w", err)
	}
	register := n.registerServed
	if m.Kind() == mr.KindResident {
		register = n.Residents.Register
	}
	r, err := register(m, o)
	if err != nil {
		return nil, errno.Line("xdpfab: %w", err)
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
			n.Dev.Withdraw(r.Key())
		}
		if then != nil {
			then()
		}
	}
	r, err := n.Table.Register(m, o)
	if err != nil {
		return nil, err
	}
	if err := n.Dev.Register(r, m, o); err != nil {
		return nil, errors.Join(fmt.Errorf("register: %w", err), r.Close())
	}
	offered = true
	return r, nil
}

// RegisterOwned registers memory that the domain frees when it closes. d.node.mu is held.
func (n *Node) RegisterOwned(m *mr.Memory, name string, size int) (*mr.Region, error) {
	r, err := n.Register(m, mr.Options{Name: name, Length: size, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	n.Owned = append(n.Owned, m)
	return r, nil
}

// Operate executes an operation of a peer, with an authorization key, on the node's
// memory for the host of the node, and puts its result into result. Thread of the first
// engine.
func (n *Node) Operate(rec *wire.Record, auth uint32, result []byte) wire.Status {
	return n.memory[0].Apply(rec, auth, result)
}

// Settle is called when the operations at hand have been executed.
func (n *Node) Settle() { n.memory[0].Leave() }

// Allocate returns memory for a region.
func (n *Node) Allocate(name string, size int) (*mr.Memory, error) {
	return n.Dev.Memory(name, size)
}

// closeRegions deregisters all regions and frees the memory that NewRegion allocated.
func (n *Node) closeRegions() error {
	n.Mu.Lock()
	owned := n.Owned
	n.Owned = nil
	n.Mu.Unlock()
	var errs []error
	for _, r := range n.Table.All() {
		errs = append(errs, r.Close())
	}
	for _, m := range owned {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
