// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Mailbox is the number of the mailbox at which Serve is asked, unless a flag says
// otherwise: that of echo among the ports of the Internet.
const Mailbox = 7

// ask asks the other side for an endpoint that answers messages, or for the end of one.
type ask struct {
	Endpoint uint16    `json:"endpoint"` // of the asker, from which the messages come
	Test     load.Test `json:"test,omitempty"`
	Size     int       `json:"size,omitempty"`
	Flight   int       `json:"flight,omitempty"`
	Untagged bool      `json:"untagged,omitempty"`
	End      bool      `json:"end,omitempty"`
	Sent     uint64    `json:"sent,omitempty"` // messages, at the end
}

// answer is the other side's.
type answer struct {
	Endpoint uint16 `json:"endpoint,omitempty"` // to which the messages go
	Received uint64 `json:"received,omitempty"` // messages, at the end
	Error    string `json:"error,omitempty"`
}

// maxAsk bounds an ask and an answer, bytes.
const maxAsk = 1 << 10

// caller asks the other side. One goroutine uses it.
type caller struct {
	box *xdpfab.Mailbox
	to  *xdpfab.Peer
}

func newCaller(ctx context.Context, dom *xdpfab.Domain, addr string) (*caller, error) {
	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber})
	if err != nil {
		return nil, err
	}
	to, err := box.Dial(ctx, addr)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return &caller{box, to}, nil
}

func (c *caller) call(ctx context.Context, a ask) (r answer, err error) {
	text, err := json.Marshal(a)
	if err != nil {
		return r, err
	}
	if err := c.to.Send(ctx, text); err != nil {
		return r, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { end(c.to.Watch(ctx)) }() // a peer that is gone does not answer
	m, err := c.box.Receive(ctx, make([]byte, maxAsk))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(m.Bytes, &r); err != nil {
		return r, fmt.Errorf("%s is no `xdpfab bench serve`: %w", c.to.Addr(), err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s", c.to.Addr(), r.Error)
	}
	return r, nil
}

// NodeOf returns the address of a node without the number of an endpoint.
func NodeOf(addr string) string {
	node, _, _ := strings.Cut(addr, "/")
	return node
}

// messages makes the workers of a target that send messages to it.
func (x *run) messages(ctx context.Context, t *target) error {
	c, err := newCaller(ctx, x.dom, t.Addr)
	if err != nil {
		return err
	}
	var lines []*load.Line
	var sides []*load.Transfer
	t.close = func(context.Context) error {
		var errs []error
		for _, l := range lines {
			errs = append(errs, l.Close())
		}
		return errors.Join(append(errs, c.box.Close())...)
	}
	for i := range x.c.Endpoints {
		line, err := load.NewLine(x.dom, load.LineAttr{Number: fi.AnyNumber, Flight: x.c.Window,
			Untagged: x.c.Op == Send, Wait: x.wait})
		if err != nil {
			return err
		}
		lines = append(lines, line)
		r, err := c.call(ctx, ask{Endpoint: line.Number(), Test: x.c.test(i), Size: int(x.c.Size), Flight: x.c.Window,
			Untagged: x.c.Op == Send})
		if err != nil {
			return err
		}
		if err := line.Reach(ctx, fmt.Sprintf("%s/%d", NodeOf(t.Addr), r.Endpoint)); err != nil {
			return err
		}
		l, err := load.NewTransfer(line,
			load.TransferConfig{Test: x.c.test(i), Size: int(x.c.Size), Flight: x.c.Window}, false)
		if err != nil {
			return err
		}
		sides = append(sides, l)
		x.worker(t, i, transfers{l})
	}
	t.verify = func(ctx context.Context) (v Verification, err error) {
		v.What = "messages"
		for i, l := range sides {
			r, err := c.call(ctx, ask{Endpoint: lines[i].Number(), End: true, Sent: l.Messages()})
			if err != nil {
				return v, err
			}
			if r.Received != l.Messages() {
				return v, fmt.Errorf("verification failed: %d messages were sent, and %d received", l.Messages(),
					r.Received)
			}
			v.Sent += l.Messages()
		}
		return v, nil
	}
	return nil
}
