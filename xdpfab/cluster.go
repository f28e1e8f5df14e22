// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// Cluster finds the nodes of a directory by name, and dials them from a domain. It is a
// [Home], so that Word and Vector find the node that publishes a region:
//
//	hits, err := xdpfab.Word[uint64](ctx, cluster, "counters", 3)
//
// Rebind asks the directory again, and so follows a region to another node. With the
// option AutoRebind a handle does this by itself, even if its node is silent, provided
// that the operation did not run.
//
// Any number of goroutines may use a Cluster. Close closes the peers that the cluster has
// dialled, but neither the domain nor the directory.
type Cluster struct {
	dom   *Domain
	names *directory.Directory

	mu     sync.Mutex
	peers  map[string]*Peer // by the address that was dialled
	closed bool
}

// NewCluster returns a cluster of the nodes in a directory, which d dials. The directory
// is one of directory.Open, for a file or etcd.
func NewCluster(d *Domain, names *directory.Directory) *Cluster {
	return &Cluster{dom: d, names: names, peers: map[string]*Peer{}}
}

// Dial opens a session to the node that has the given name in the directory. It tries the
// node's addresses one after the other, until the node answers; the name of a host stands
// for all addresses of the host. Dial fails with directory.ErrNoNode if the directory has
// no such node, or with the errors of Domain.Dial. The peer belongs to the cluster, and
// is closed with it.
func (c *Cluster) Dial(ctx context.Context, name string) (*Peer, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	n, err := c.names.Node(name)
	if err != nil {
		return nil, errno.Unsent(err)
	}
	var at *Peer
	err = c.first(ctx, n, func(p *Peer) error { at = p; return nil })
	return at, err
}

// first gives use the peer at each address of a node in turn, until it has an answer: no
// error, or one that is not about silence.
func (c *Cluster) first(ctx context.Context, n directory.Node, use func(*Peer) error) error {
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	var failed error
	for _, text := range n.Addrs {
		addrs, err := node.ResolveAll(ctx, text, "ip") // each time: a pod has another address after a restart
		if err != nil {
			failed = besides(failed, err)
			continue
		}
		for _, addr := range addrs {
			p, err := c.at(ctx, addr.String())
			if err == nil {
				if err = use(p); !errors.Is(err, ErrPeerSilent) {
					return err
				}
			}
			failed = besides(failed, err)
			if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				return errno.Line("xdpfab: node %s: %w", n.Name, failed)
			}
		}
	}
	return errno.Line("xdpfab: node %s: %w", n.Name, failed)
}

// at returns the peer at an address, which it dials if nobody has.
func (c *Cluster) at(ctx context.Context, addr string) (*Peer, error) {
	c.mu.Lock()
	p, err := c.dialled(addr), c.open()
	c.mu.Unlock()
	if p != nil || err != nil {
		return p, err
	}
	p, err = c.dom.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.dialled(addr); other != nil || c.closed {
		return other, errno.Join(p.Close(), c.open())
	}
	c.peers[addr] = p
	return p, nil
}

// dialled returns the peer at an address, unless nobody has dialled it, or somebody has
// closed it. The caller holds the lock.
func (c *Cluster) dialled(addr string) *Peer {
	if p := c.peers[addr]; p != nil && !p.to.Closed() {
		return p
	}
	return nil
}

// besides is the failure of an address after those of others, in one line.
func besides(failed, err error) error {
	if failed == nil {
		return err
	}
	return fmt.Errorf("%w; %w", failed, err)
}

// usable returns an error if the cluster is none, or closed.
func (c *Cluster) usable() error {
	if err := c.there(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return errno.Unsent(c.open())
}

// open returns an error if the cluster is closed. The caller holds the lock.
func (c *Cluster) open() error {
	if c.closed {
		return errno.Refuse(ErrClosed, "xdpfab: the cluster is closed: want one of NewCluster")
	}
	return nil
}

// Close closes the peers that the cluster has dialled. Closing twice is no error.
func (c *Cluster) Close() error {
	if c == nil {
		return c.there()
	}
	c.mu.Lock()
	peers := c.peers
	c.peers, c.closed = nil, true
	c.mu.Unlock()
	var errs []error
	for _, p := range peers {
		errs = append(errs, p.Close())
	}
	return errno.Join(errs...)
}

// find implements Home.
func (c *Cluster) find(ctx context.Context, region string) (*place, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	n, err := c.names.Home(region)
	if err != nil {
		if errors.Is(err, directory.ErrNoNode) {
			err = errno.Refuse(ErrNoRegion, "%w", err)
		}
		return nil, errno.Unsent(errno.Line("xdpfab: %w", err))
	}
	var found *place
	err = c.first(ctx, n, func(p *Peer) (err error) {
		found, err = p.find(ctx, region)
		return err
	})
	return found, err
}

// moved implements Home. A host's name may mean another address by now, so it counts as a
// move if the peer is silent or has closed.
func (c *Cluster) moved(at *place, err error) bool {
	n, unknown := c.names.Home(at.Name)
	if unknown != nil {
		return false
	}
	named := false
	for _, text := range n.Addrs {
		a, bad := wire.ParseAddr(text)
		if bad == nil && a.String() == at.peer.Addr() {
			return false
		}
		named = named || bad != nil
	}
	return !named || errors.Is(err, ErrPeerSilent) || errors.Is(err, ErrPeerClosed)
}
