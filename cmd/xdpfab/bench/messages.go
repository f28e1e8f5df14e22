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
	Back     bool      `json:"back,omitempty"` // the messages go to the asker
	End      bool      `json:"end,omitempty"`
	Sent     uint64    `json:"sent,omitempty"` // messages, at the end
}

// answer is the other side's.
type answer struct {
	Endpoint uint16 `json:"endpoint,omitempty"` // to which the messages go
	Received uint64 `json:"received,omitempty"` // messages, at the end
	Back     bool   `json:"back,omitempty"`     // the messages come from there
	Sent     uint64 `json:"sent,omitempty"`     // messages, at the end
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

// talk is the messages of one endpoint.
type talk struct {
	*load.Transfer
	line *load.Line
	back bool // they come from the peer
}

// messages makes the workers of a target that send messages to it, or receive them.
func (x *run) messages(ctx context.Context, t *target) error {
	c, err := newCaller(ctx, x.dom, t.Addr)
	if err != nil {
		return err
	}
	var talks []talk
	t.close = func(context.Context) error {
		var errs []error
		for _, l := range talks {
			errs = append(errs, l.line.Close())
		}
		return errors.Join(append(errs, c.box.Close())...)
	}
	for i := range x.c.Endpoints {
		line, err := load.NewLine(x.dom, load.LineAttr{Number: fi.AnyNumber, Flight: x.c.Window,
			Untagged: x.c.Op == Send, Wait: x.wait})
		if err != nil {
			return err
		}
		l := talk{line: line, back: x.c.back(i)}
		talks = append(talks, l)
		if l.Transfer, err = x.begin(ctx, t, c, i, &l); err != nil {
			return err
		}
		if talks[i] = l; l.back {
			x.worker(t, i, arrivals{transfers{l.Transfer}})
		} else {
			x.worker(t, i, transfers{l.Transfer})
		}
	}
	t.verify = func(ctx context.Context) (v Verification, err error) {
		v.What = "messages"
		for _, l := range talks {
			if err := l.end(ctx, c); err != nil {
				return v, err
			}
			v.Sent += l.Messages()
		}
		return v, nil
	}
	return nil
}

// begin has the other side take part in the messages of endpoint i.
func (x *run) begin(ctx context.Context, t *target, c *caller, i int, l *talk) (*load.Transfer, error) {
	// This side is ready before the other one may send.
	own, err := load.NewTransfer(l.line, load.TransferConfig{Test: x.c.test(i), Size: int(x.c.Size),
		Flight: x.c.Window}, l.back)
	if err != nil {
		return nil, err
	}
	r, err := c.call(ctx, ask{Endpoint: l.line.Number(), Test: x.c.test(i), Size: int(x.c.Size), Flight: x.c.Window,
		Untagged: x.c.Op == Send, Back: l.back})
	switch {
	case err != nil:
		return nil, err
	case r.Back != l.back:
		return nil, fmt.Errorf("%s: `xdpfab bench serve` is of an older release there, and cannot send: want it of "+
			"this one for --both", c.to.Addr())
	}
	return own, l.line.Reach(ctx, fmt.Sprintf("%s/%d", NodeOf(t.Addr), r.Endpoint))
}

// end has the other side end, and compares what was sent with what was received.
func (l *talk) end(ctx context.Context, c *caller) error {
	rest := func(uint64) error { return nil }
	if l.back {
		rest = l.takeRest(ctx)
	}
	asked := ask{Endpoint: l.line.Number(), End: true}
	if !l.back {
		asked.Sent = l.Messages()
	}
	r, err := c.call(ctx, asked)
	if err = errors.Join(err, rest(r.Sent)); err != nil {
		return err
	}
	sent, received := asked.Sent, r.Received
	if l.back {
		sent, received = r.Sent, l.Messages()
	}
	if received != sent {
		return fmt.Errorf("verification failed: %d messages were sent, and %d received", sent, received)
	}
	return nil
}

// takeRest begins to take what the other side sends until it has ended. The function that
// it returns waits for the end, and then for the last of so many messages.
func (l *talk) takeRest(ctx context.Context) func(sent uint64) error {
	ending, stop := context.WithCancel(ctx)
	taken := make(chan error, 1)
	go func() { taken <- l.Serve(ending) }()
	return func(sent uint64) error {
		stop()
		err := <-taken
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for err == nil && l.Messages() < sent && ctx.Err() == nil {
			err = l.ServeStep(ctx)
		}
		return err
	}
}
