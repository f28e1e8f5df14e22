// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// transport is xdpfab's load.Transport: an endpoint, which sends tagged messages as the
// peers' do, and the messages that it posts, which are used again and again.
type transport struct {
	ep *fi.Endpoint
	cq *fi.CompletionQueue

	message fi.Message
	receive fi.Receive
	access  fi.RMA
	base    uint64 // of the peer's region; see RemoteRegion.Base
}

// newTransport makes the endpoint with number 0, for one peer, and room in its queues for
// a number of operations of either kind.
func newTransport(ctx context.Context, dom *xdpfab.Domain, peer string, room int) (*transport, error) {
	t := &transport{}
	av, err := dom.NewAddressVector()
	if err != nil {
		return nil, err
	}
	dest, err := av.Insert(ctx, peer)
	if err != nil {
		return nil, err
	}
	t.message.Dest, t.access.Dest = dest, dest
	if t.cq, err = dom.NewCompletionQueue(fi.CQAttr{Size: 2 * room}); err != nil {
		return nil, err
	}
	if t.ep, err = dom.NewEndpoint(xdpfab.EndpointAttr{Size: room, ReceiveSize: room}); err != nil {
		return nil, err
	}
	return t, errors.Join(t.ep.Bind(av, 0), t.ep.Bind(t.cq, fi.BindTransmit|fi.BindRecv), t.ep.Enable())
}

// find makes the peer's region the target of writes and reads.
func (t *transport) find(ctx context.Context, region string) error {
	r, err := t.ep.Lookup(ctx, t.access.Dest, region)
	t.base, t.access.Key, t.access.Incarnation = r.Base, r.Key, r.Incarnation
	return err
}

func (t *transport) Send(buf []byte, c any) error {
	t.message.Buf, t.message.Context = buf, c
	return t.ep.SendTagged(&t.message, 0)
}

func (t *transport) Receive(buf []byte, c any) error {
	t.receive.Buf, t.receive.Context = buf, c
	return t.ep.ReceiveTagged(&t.receive, 0)
}

func (t *transport) Write(buf []byte, offset uint64, c any) error {
	return t.ep.Write(t.at(buf, offset, c), 0)
}

func (t *transport) Read(buf []byte, offset uint64, c any) error {
	return t.ep.Read(t.at(buf, offset, c), 0)
}

func (t *transport) at(buf []byte, offset uint64, c any) *fi.RMA {
	t.access.Buf, t.access.Offset, t.access.Context = buf, t.base+offset, c
	return &t.access
}

func (t *transport) Collect(batch []fi.Completion) (int, error) {
	n, err := t.cq.Read(batch)
	if err != nil {
		if c, ok := t.cq.ReadErr(); ok {
			err = c.Err
		}
	}
	return n, err
}
