// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/handler"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// HandlerAttr are the attributes of an endpoint whose function answers requests.
type HandlerAttr struct {
	Number, Requests, Goroutines int
	TrafficClass                 uint16
	AuthKey                      []byte
	Function                     handler.Function
}

// Handler is such an endpoint.
type Handler interface {
	Number() uint16
	Name() string
	Close() error
	// Held is how many requests it has.
	Held() int
}

// Caller returns the peer by which the requests to this one go: it has a session of its
// own, without order, so that no function delays other operations. The first call opens
// it.
func (p *Peer) Caller(ctx context.Context) (*Peer, error) {
	if c := p.caller.Load(); c != nil {
		return c, nil
	}
	if p.closed.Load() {
		return nil, p.errClosed()
	}
	if p.Beside == nil {
		return nil, fmt.Errorf("xdpfab: peer %s: it takes no requests by this handle", p.Name)
	}
	c, err := p.Beside(ctx)
	if err != nil {
		return nil, err
	}
	if !p.caller.CompareAndSwap(nil, c) { // another goroutine was faster
		err = c.Close()
		c = p.caller.Load()
	}
	if p.closed.Load() && err == nil { // perhaps before it could see the caller
		err = c.Close()
	}
	return c, err
}

// Request sends a request, and waits for its reply, of which result gets the first bytes.
func (p *Peer) Request(ctx context.Context, request, result []byte) error {
	return p.Do(ctx, Call{Verb: wire.VerbCall, Op: wire.OpWrite, Datatype: wire.Byte, Count: uint32(len(request)),
		Offset: uint64(len(result) - wire.ReplyHead), Operand: request, Result: result})
}
