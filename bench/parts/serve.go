// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Endpoints of the server of calls.
const (
	function = 9  // a handler
	echo     = 10 // a mailbox
)

// serve is the node of the tests of calls: a region "bench", and a function that answers
// each request with the request, or a mailbox whose owner sends each message back. It
// makes progress by itself.
func serve(ctx context.Context, s *settings, what string) (err error) {
	dom, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dom.CloseAll()) }()
	if _, err := dom.Serve(region, 64<<10); err != nil {
		return err
	}
	if what == "serve-messages" {
		return serveMessages(ctx, dom, s.size)
	}
	if _, err := dom.Handle(xdpfab.HandlerAttr{Number: function},
		func(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) { return request, nil }); err != nil {
		return err
	}
	fmt.Println(measure.Ready, dom.Name(0))
	<-ctx.Done()
	return nil
}

// serveMessages sends back the messages of one client, of at most size bytes.
func serveMessages(ctx context.Context, dom *xdpfab.Domain, size int) error {
	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: echo})
	if err != nil {
		return err
	}
	fmt.Println(measure.Ready, dom.Name(0))
	var back *xdpfab.Peer
	for m, err := range box.All(ctx, make([]byte, size)) {
		if err == nil && back == nil {
			back, err = box.Dial(ctx, m.From.String())
		}
		if err == nil {
			err = back.Send(ctx, m.Bytes)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// call has the function answer one request at a time.
func (h *home) call(ctx context.Context) (loop, check, error) {
	request, reply := slices.Repeat([]byte{1}, h.size), make([]byte, h.size)
	return each(1, func(ctx context.Context) error {
		request[0]++
		n, err := h.peer.Call(ctx, request, reply)
		return same(request, reply[:n], err)
	}), unchecked, nil
}

// message sends a message, and waits for the one that comes back.
func (h *home) message(ctx context.Context) (loop, check, error) {
	box, err := h.dom.NewMailbox(xdpfab.MailboxAttr{Number: echo})
	if err != nil {
		return nil, nil, err
	}
	to, err := box.Dial(ctx, fmt.Sprint(h.settings.peer, "/", echo))
	request, reply := slices.Repeat([]byte{1}, h.size), make([]byte, h.size)
	return each(1, func(ctx context.Context) error {
		request[0]++
		if err := to.Send(ctx, request); err != nil {
			return err
		}
		m, err := box.Receive(ctx, reply)
		return same(request, m.Bytes, err)
	}), unchecked, err
}

// same is the error for a reply that is not the request.
func same(request, reply []byte, err error) error {
	if err == nil && !bytes.Equal(request, reply) {
		return fmt.Errorf("%x came back for %x", reply, request)
	}
	return err
}
