// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// losses tells when etcd may have become another one: a connection has ended, or, behind
// a proxy, a watch. The client begins the next one by itself, and says nothing of it.
// losses implements stats.Handler.
type losses struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next one
	last error         // of the last call; nil if that succeeded
}

func newLosses() *losses { return &losses{next: make(chan struct{})} }

// after returns a channel that is closed by the first loss after this call.
func (l *losses) after() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

func (l *losses) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.next)
	l.next = make(chan struct{})
}

// HandleConn implements stats.Handler.
func (l *losses) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, end := s.(*stats.ConnEnd); end {
		l.lost()
	}
}

// HandleRPC implements stats.Handler. A watch that this process has ended is no loss.
func (l *losses) HandleRPC(ctx context.Context, s stats.RPCStats) {
	e, end := s.(*stats.End)
	if !end || status.Code(e.Error) == codes.Canceled {
		return
	}
	l.mu.Lock()
	l.last = e.Error
	l.mu.Unlock()
	if ctx.Value(isWatch{}) != nil {
		l.lost()
	}
}

// cause returns what package grpc says of the last call, if it failed: package clientv3
// tries again and drops that, and returns that the time is over.
func (l *losses) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := status.Convert(l.last).Message()
	if text == "" || text == context.DeadlineExceeded.Error() { // which says nothing more
		return nil
	}
	return errors.New(text)
}

// isWatch is the key of a value that the contexts of watches have.
type isWatch struct{}

// TagRPC implements stats.Handler.
func (l *losses) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if strings.HasSuffix(info.FullMethodName, "/Watch") {
		return context.WithValue(ctx, isWatch{}, true)
	}
	return ctx
}

// TagConn implements stats.Handler.
func (l *losses) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
