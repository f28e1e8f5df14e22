// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"maps"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// block reserves the numbers of a scalable endpoint of the guest, and returns the first
// one. To the host, a scalable endpoint is no more than its numbers.
func (g *Guest) block(_ context.Context, b share.Block) (uint16, error) {
	if b.Length < 1 || b.Length > node.MaxBlock {
		return 0, errno.Refuse(errno.Count, "scalable endpoint of %d numbers: want 1..%d", b.Length, node.MaxBlock)
	}
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if err := g.mayNumber(b.Length); err != nil {
		return 0, err
	}
	s, err := g.h.n.Numbers.Reserve(b.Number, b.Length)
	if err != nil {
		return 0, err
	}
	g.blocks[uint16(s.First)] = s
	return uint16(s.First), nil
}

// mayNumber reports why the guest may not have so many numbers of endpoints more. Those
// of a scalable endpoint count from the beginning, and its contexts no more. Host.mu and
// mu are held.
func (g *Guest) mayNumber(more int) error {
	has := len(g.listeners)
	for _, s := range g.blocks {
		has += s.Length
	}
	for n := range g.endpoints {
		if !g.reserves(int(n)) {
			has++
		}
	}
	if more > g.limits.Endpoints-has {
		return g.tooMany("endpoints", g.limits.Endpoints)
	}
	return nil
}

// reserves reports whether a number belongs to a scalable endpoint of the guest. Host.mu
// and mu are held.
func (g *Guest) reserves(number int) bool {
	if number < 0 {
		return false
	}
	s := g.h.n.Numbers.BlockOf(uint16(number))
	return s != nil && g.blocks[uint16(s.First)] == s
}

// releaseNumbers gives the numbers back. No context may be open: it would have no
// scalable endpoint at the next host.
func (g *Guest) releaseNumbers(_ context.Context, number uint16) (any, error) {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for n, ep := range g.endpoints {
		if of := ep.as.Block; of != nil && *of == number {
			return nil, errno.Refuse(errno.Busy,
				"scalable endpoint %d: its context %d is open: close it first", number,
				n)
		}
	}
	if s := g.blocks[number]; s != nil {
		delete(g.blocks, number)
		g.h.n.Numbers.Unreserve(s)
	}
	return nil, nil
}

// releaseAllNumbers gives all numbers back.
func (g *Guest) releaseAllNumbers() {
	g.Mu.Lock()
	blocks := maps.Clone(g.blocks)
	g.Mu.Unlock()
	for number := range blocks {
		_, _ = g.releaseNumbers(context.Background(), number)
	}
}

// contextOf returns the block that the number of an endpoint must be in, if it is a
// receive context of a scalable endpoint of the guest. g.mu is held.
func (g *Guest) contextOf(a *share.Endpoint) (*node.Block, error) {
	if a.Block == nil {
		return nil, nil
	}
	s := g.blocks[*a.Block]
	if s == nil {
		return nil, fmt.Errorf("scalable endpoint %d: %w", *a.Block, errno.Closed)
	}
	if !a.Posts && a.Number == node.AnyNumber {
		return nil,
			errno.Refuse(errno.NotImplemented,
				"receive context of scalable endpoint %d without a number: want one of its %d numbers",
				*a.Block, s.Length)
	}
	if a.Posts {
		return nil, nil
	}
	return s, nil
}
