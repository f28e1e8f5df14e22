// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync"

	"google.golang.org/grpc/stats"
)

// conns tells when a connection to etcd ends. Package grpc makes the next one by itself.
// conns implements stats.Handler.
type conns struct {
	mu   sync.Mutex
	next chan struct{} // closed when the next one ends
}

func newConns() *conns { return &conns{next: make(chan struct{})} }

// ended returns a channel that is closed when a connection ends after this call.
func (c *conns) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// HandleConn implements stats.Handler.
func (c *conns) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, end := s.(*stats.ConnEnd); !end {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}

// TagConn, TagRPC and HandleRPC implement stats.Handler.
func (c *conns) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *conns) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c *conns) HandleRPC(context.Context, stats.RPCStats) {}
