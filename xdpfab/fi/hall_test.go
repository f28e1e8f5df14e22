// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// hall is two domains whose endpoints talk to each other, and the addresses by which they
// do that.
type hall struct {
	*testing.T
	a, b *xdpfab.Domain
	name func(d *xdpfab.Domain, endpoint uint16) string
}

// onEveryPath runs a test of messages on a Pipe, and on a veth pair in both
// encapsulations; with both kinds of progress, which are those of both domains. Guests
// are on a Pipe, once as the first domain and once as the second.
func onEveryPath(t *testing.T, f func(h *hall)) {
	progressModes(t, func(t *testing.T, attr fi.DomainAttr) {
		t.Run("pipe", func(t *testing.T) { f(pipeHall(t, attr)) })
		if attr.Attach == fi.AttachAlways {
			t.Run("pipe to it", func(t *testing.T) { f(pipeHall(t, fi.DomainAttr{Progress: attr.Progress}, attr)) })
			return // test/e2e has daemons
		}
		var a, b *xdpfab.Domain
		var pair *testnet.Pair
		a, b, pair = onVeth(t, 1, attr, attr)
		t.Run("ethernet", func(t *testing.T) { f(&hall{t, a, b, (*xdpfab.Domain).Name}) })
		t.Run("udp", func(t *testing.T) {
			f(&hall{t, a, b, func(d *xdpfab.Domain, endpoint uint16) string {
				ip := map[*xdpfab.Domain]netip.Addr{a: pair.A.IP4, b: pair.B.IP4}[d]
				return fmt.Sprintf("%v/%d", ip, endpoint)
			}})
		})
	})
}

// pipeHall is a hall on a Pipe; join says what the attributes are of.
func pipeHall(t *testing.T, attr ...fi.DomainAttr) *hall {
	a, b, err := join(t, attr...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.CloseAll(), b.CloseAll()); err != nil {
			t.Error(err)
		}
	})
	return &hall{t, a, b, (*xdpfab.Domain).Name}
}

func (h *hall) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// talker makes an endpoint that sends and receives; see newTalker.
func (h *hall) talker(d *xdpfab.Domain, attr fi.EndpointAttr, bind ...func(k *talker) error) *talker {
	h.Helper()
	k := newTalker(h.T, d, attr, bind...)
	k.name = h.name(d, k.ep.Number())
	return k
}

// knows returns the address of a talker in the vector of another one. Both domains make
// progress until it is resolved.
func (h *hall) knows(k, other *talker) (a fi.Address) {
	h.Helper()
	return k.knows(h.T, other)
}

// step lets both domains make progress, or gives their threads time.
func (h *hall) step() {
	if h.a.Progress()+h.b.Progress() == 0 {
		time.Sleep(20 * time.Microsecond)
	}
}

// until steps until something holds.
func (h *hall) until(what string, cond func() bool) {
	h.Helper()
	for end := time.Now().Add(testnet.Patience); !cond(); h.step() {
		if time.Now().After(end) {
			h.Fatalf("after %v still not: %s", testnet.Patience, what)
		}
	}
}

// try takes the next completion of a queue, with or without an error, if there is one.
func (h *hall) try(cq *fi.CompletionQueue) (c fi.Completion, ok bool) {
	h.Helper()
	var list [1]fi.Completion
	switch n, err := cq.Read(list[:]); {
	case errors.Is(err, fi.ErrErrorPending):
		return cq.ReadErr()
	case err != nil:
		h.Fatal(err)
	case n == 1:
		return list[0], true
	}
	return c, false
}

// one waits for the next completion of a queue.
func (h *hall) one(cq *fi.CompletionQueue) (c fi.Completion) {
	h.Helper()
	h.until("a completion", func() (ok bool) {
		c, ok = h.try(cq)
		return ok
	})
	return c
}

// success waits for the next completion, which must be that of an operation posted with
// the context, and have succeeded.
func (h *hall) success(cq *fi.CompletionQueue, context any) fi.Completion {
	h.Helper()
	c := h.one(cq)
	if c.Err != nil || c.Context != context || c.Overflow != 0 {
		h.Fatalf("completion %+v: want success, and context %v", c, context)
	}
	return c
}

// failure waits for the next completion, which must be that of an operation posted with
// the context, and have failed for the cause.
func (h *hall) failure(cq *fi.CompletionQueue, context any, cause error) fi.Completion {
	h.Helper()
	c := h.one(cq)
	if !errors.Is(c.Err, cause) || c.Context != context {
		h.Fatalf("completion %+v: want the failure %v, and context %v", c, cause, context)
	}
	return c
}

// nothing checks that queues have no completion now.
func (h *hall) nothing(list ...*fi.CompletionQueue) {
	h.Helper()
	for range 3 {
		h.step()
	}
	for i, cq := range list {
		if c, ok := h.try(cq); ok {
			h.Fatalf("queue %d: completion %+v: want none", i, c)
		}
	}
}

// told sends a message without a tag and waits until it is sent. The target has room for
// it.
func (h *hall) told(k *talker, to fi.Address, text string) {
	h.Helper()
	h.ok(k.ep.Send(&fi.Message{Buf: []byte(text), Dest: to, Context: text}, 0))
	h.success(k.sent, text)
}

// toldTagged is told for a message with a tag.
func (h *hall) toldTagged(k *talker, to fi.Address, tag uint64, text string) {
	h.Helper()
	h.ok(k.ep.SendTagged(&fi.Message{Buf: []byte(text), Dest: to, Tag: tag, Context: text}, 0))
	h.success(k.sent, text)
}
