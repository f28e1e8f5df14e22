// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Transport is an endpoint with one peer, to which messages and accesses of its memory
// go, and its completion queue. The buffers belong to it until completion. The calls that
// post return xdpfab.ErrAgain when there is no room for another operation.
type Transport interface {
	Send(buf []byte, context any) error
	Receive(buf []byte, context any) error
	// Write and Read access the peer's memory at an offset. A write completes when it
	// has arrived there.
	Write(buf []byte, offset uint64, context any) error
	Read(buf []byte, offset uint64, context any) error
	// Collect makes progress, and takes completions, if there are any. It may wait for
	// one: something is always under way.
	Collect(context.Context, []fi.Completion) (int, error)
}

// room is the number of operations that the queues of a Line have room for, in addition
// to those under way.
const room = 64

// LineAttr describes a Line.
type LineAttr struct {
	Number   int  // of the endpoint, or fi.AnyNumber
	Flight   int  // operations under way, of either kind
	Untagged bool // messages have no tag
	// Wait tells whether Collect waits as long as there is nothing to collect; nil for
	// never. A loop that is alone on its thread is faster if it does not.
	Wait func() bool
}

// Line is a Transport by the public API: an endpoint, and the operations that it posts,
// which are used again and again. One goroutine uses it at a time.
type Line struct {
	ep   *fi.Endpoint
	cq   *fi.CompletionQueue
	av   *fi.AddressVector
	attr LineAttr

	message fi.Message
	receive fi.Receive
	access  fi.RMA
	base    uint64 // of the peer's region; see RemoteRegion.Base
}

// NewLine makes the endpoint. Reach has to give it its peer before anything but receives
// is posted.
func NewLine(dom *xdpfab.Domain, attr LineAttr) (*Line, error) {
	l := &Line{attr: attr}
	var err error
	if l.av, err = dom.NewAddressVector(); err != nil {
		return nil, err
	}
	size := room + attr.Flight
	if l.cq, err = dom.NewCompletionQueue(fi.CQAttr{Size: 2 * size}); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.ep, err = dom.NewEndpoint(xdpfab.EndpointAttr{Number: attr.Number, Size: size, ReceiveSize: size})
	if err == nil {
		err = errors.Join(l.ep.Bind(l.av, 0), l.ep.Bind(l.cq, fi.BindTransmit|fi.BindRecv), l.ep.Enable())
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Number returns the number of the endpoint.
func (l *Line) Number() uint16 { return l.ep.Number() }

// Reach makes an endpoint the peer.
func (l *Line) Reach(ctx context.Context, peer string) error {
	dest, err := l.av.Insert(ctx, peer)
	l.message.Dest, l.access.Dest = dest, dest
	return err
}

// Find makes the peer's region the target of writes and reads.
func (l *Line) Find(ctx context.Context, region string) error {
	r, err := l.ep.Lookup(ctx, l.access.Dest, region)
	l.Access(r)
	return err
}

// Access makes a region that has been found the target of writes and reads.
func (l *Line) Access(r xdpfab.RemoteRegion) {
	l.base, l.access.Key, l.access.Incarnation = r.Base, r.Key, r.Incarnation
}

// Signal has every write add 1 to a word of the peer's region at an offset.
func (l *Line) Signal(r xdpfab.RemoteRegion, offset uint64) {
	l.access.Signal = &fi.Msg{Key: r.Key, Incarnation: r.Incarnation, Offset: r.Base + offset, Datatype: atomic.Uint64,
		Op: atomic.Sum, Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}}
}

// Close ends the endpoint, and what is under way.
func (l *Line) Close() error {
	var errs []error
	if l.ep != nil {
		errs = append(errs, l.ep.Close())
	}
	if l.cq != nil {
		errs = append(errs, l.cq.Close())
	}
	return errors.Join(append(errs, l.av.Close())...)
}

// Send sends a message.
func (l *Line) Send(buf []byte, c any) error {
	l.message.Buf, l.message.Context = buf, c
	if l.attr.Untagged {
		return l.ep.Send(&l.message, 0)
	}
	return l.ep.SendTagged(&l.message, 0)
}

// Receive posts a receive.
func (l *Line) Receive(buf []byte, c any) error {
	l.receive.Buf, l.receive.Context = buf, c
	if l.attr.Untagged {
		return l.ep.Receive(&l.receive, 0)
	}
	return l.ep.ReceiveTagged(&l.receive, 0)
}

// Write writes the peer's memory.
func (l *Line) Write(buf []byte, offset uint64, c any) error {
	return l.ep.Write(l.at(buf, offset, c), 0)
}

// Read reads the peer's memory.
func (l *Line) Read(buf []byte, offset uint64, c any) error {
	return l.ep.Read(l.at(buf, offset, c), 0)
}

func (l *Line) at(buf []byte, offset uint64, c any) *fi.RMA {
	l.access.Buf, l.access.Offset, l.access.Context = buf, l.base+offset, c
	return &l.access
}

// Collect makes progress, and takes completions.
func (l *Line) Collect(ctx context.Context, batch []fi.Completion) (int, error) {
	n, err := l.cq.Read(batch)
	if err == nil && n == 0 && l.attr.Wait != nil && l.attr.Wait() {
		if err = l.cq.Wait(ctx, 1); err == nil {
			n, err = l.cq.Read(batch)
		}
	}
	if err != nil {
		if c, ok := l.cq.ReadErr(); ok {
			err = c.Err
		}
	}
	return n, err
}
