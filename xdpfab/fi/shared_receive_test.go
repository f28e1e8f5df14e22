// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// sharing makes endpoints that share a receive context, and returns their names.
func (h *hall) sharing(x *fi.SharedReceive, n int) (list []*fi.Endpoint) {
	h.Helper()
	for range n {
		ep, err := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		h.ok(errors.Join(err, ep.Bind(x, 0), ep.Enable()))
		list = append(list, ep)
	}
	return list
}

// The receives of a shared context take the messages of all its endpoints in the order
// in which they come, and completions say whose they are.
func TestSharedReceive(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		got, err1 := h.b.NewCompletionQueue(fi.CQAttr{Size: 64})
		count, err2 := h.b.NewCounter()
		h.ok(errors.Join(err1, err2))
		x, err := h.b.NewSharedReceive(fi.SharedReceiveAttr{Queue: got, Counter: count, ReceiveSize: 8, BufferedReceive: -1, MinMultiRecv: 10, ReceiveFlags: fi.FlagMultiRecv})
		h.ok(err)
		if a := x.Attr(); a.ReceiveSize != 8 || a.BufferedReceive != -1 || x.MinMultiRecv() != 10 {
			h.Errorf("attributes %+v", a)
		}
		eps := h.sharing(x, 2)
		a := h.talker(h.a, fi.EndpointAttr{})
		var dest []fi.Address
		for _, ep := range eps {
			at, err := a.av.Insert(ctx(h.T), h.name(h.b, ep.Number()))
			h.ok(err)
			dest = append(dest, at)
		}
		// Posted first, and messages first.
		for i := range 4 {
			buf := make([]byte, 8)
			r := fi.Receive{Buf: buf, Tag: 1, Context: i}
			text := string(rune('a' + i))
			if i < 2 {
				h.ok(x.ReceiveTagged(&r, 0))
			}
			h.toldTagged(a, dest[i%2], 1, text)
			if i >= 2 {
				h.ok(x.ReceiveTagged(&r, 0))
			}
			if c := h.success(got, i); c.Endpoint != eps[i%2] || buf[0] != text[0] || c.Tag != 1 {
				h.Errorf("message %s: %+v", text, c)
			}
		}
		h.ok(x.Receive(&fi.Receive{Buf: make([]byte, 100), Context: "many"}, fi.FlagDefaults))
		for i := range 2 {
			h.told(a, dest[i], "x")
			if c := h.success(got, "many"); c.Offset != i || c.Endpoint != eps[i] {
				h.Errorf("one of many: %+v", c)
			}
		}
		h.ok(x.Cancel("many"))
		h.failure(got, "many", fi.ErrCancelled)
		// Both senders are held back, and let go by one post each.
		for i := range 2 {
			h.ok(a.ep.Send(&fi.Message{Buf: make([]byte, 2000+i), Dest: dest[i], Context: "held"}, 0))
		}
		h.nothing(a.sent, got)
		seen := map[*fi.Endpoint]bool{}
		for range 2 {
			h.ok(x.Receive(&fi.Receive{Buf: make([]byte, 3000), Context: "late"}, 0))
			c := h.success(got, "late")
			if seen[c.Endpoint] = true; c.Endpoint == eps[0] != (c.Bytes == 2000) {
				h.Errorf("%+v", c)
			}
			h.success(a.sent, "held")
		}
		if len(seen) != 2 {
			h.Error("both messages came from one endpoint")
		}
		h.until("the counter", func() bool { return count.Read() == 8 && count.ReadErr() == 1 })
		// What an endpoint has got stays when it is closed, and others go on.
		h.told(a, dest[0], "kept")
		h.ok(x.Receive(&fi.Receive{Context: "k"}, fi.FlagPeek|fi.FlagClaim))
		h.success(got, "k")
		if err := x.Close(); !errors.Is(err, fi.ErrBusy) {
			h.Errorf("close of what is bound: %v", err)
		}
		h.ok(eps[0].Close())
		h.ok(x.Receive(&fi.Receive{Buf: make([]byte, 8), Context: "k"}, fi.FlagClaim))
		if c := h.success(got, "k"); c.Bytes != 4 || c.Endpoint != eps[0] {
			h.Errorf("%+v", c)
		}
		h.ok(x.Receive(&fi.Receive{Context: "last"}, 0))
		h.ok(eps[1].Close())
		for _, err := range []error{got.Close(), count.Close()} {
			if !errors.Is(err, fi.ErrBusy) {
				h.Errorf("close of what the context needs: %v", err)
			}
		}
		h.ok(x.Close())
		h.failure(got, "last", fi.ErrCancelled)
		for _, err := range []error{x.Receive(&fi.Receive{}, 0), x.ReceiveTagged(&fi.Receive{}, fi.FlagPeek), x.Cancel(1)} {
			if !errors.Is(err, fi.ErrClosed) {
				h.Errorf("after Close: %v", err)
			}
		}
		h.ok(errors.Join(x.Close(), got.Close(), count.Close()))
	})
}

// What cannot be shared, or posted to what is shared, is refused.
func TestSharedReceiveRefusals(t *testing.T) {
	h := pipeHall(t, fi.DomainAttr{})
	got, err1 := h.b.NewCompletionQueue(fi.CQAttr{})
	other, err2 := h.a.NewCompletionQueue(fi.CQAttr{})
	foreign, err3 := h.a.NewCounter()
	count, err4 := h.b.NewCounter()
	h.ok(errors.Join(err1, err2, err3, err4))
	for want, attr := range map[error]fi.SharedReceiveAttr{
		fi.ErrNoCQ: {}, fi.ErrForeign: {Queue: other}, fi.ErrCount: {Queue: got, ReceiveSize: -1},
		fi.ErrTooBig: {Queue: got, BufferedReceive: 1 << 31}, fi.ErrBadFlags: {Queue: got, ReceiveFlags: fi.FlagPeek},
	} {
		if _, err := h.b.NewSharedReceive(attr); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", attr, err, want)
		}
	}
	if _, err := h.b.NewSharedReceive(fi.SharedReceiveAttr{Queue: got, Counter: foreign}); !errors.Is(err, fi.ErrForeign) {
		t.Errorf("a counter of another domain: %v", err)
	}
	x, err := h.b.NewSharedReceive(fi.SharedReceiveAttr{Queue: got})
	h.ok(err)
	ep := h.sharing(x, 1)[0]
	if got := ep.Info().Endpoint.RXContexts; got != fi.SharedContext {
		t.Errorf("rx_ctx_cnt %v", got)
	}
	for _, err := range []error{ep.Receive(&fi.Receive{}, 0), ep.Cancel(1), ep.SetMinMultiRecv(7)} {
		if !errors.Is(err, fi.ErrNotReceiving) {
			t.Errorf("by the endpoint: %v", err)
		}
	}
	if err := x.Receive(&fi.Receive{}, fi.FlagDirected); !errors.Is(err, fi.ErrNoAV) {
		t.Errorf("from one source: %v", err)
	}
	h.ok(x.Receive(&fi.Receive{Source: fi.NoAddress}, fi.FlagDirected))
	fresh := func(d *xdpfab.Domain, attr fi.EndpointAttr) *fi.Endpoint {
		attr.Number = fi.AnyNumber
		ep, err := d.NewEndpoint(attr)
		h.ok(err)
		return ep
	}
	counted, bound, twice := fresh(h.b, fi.EndpointAttr{}), fresh(h.b, fi.EndpointAttr{}), fresh(h.b, fi.EndpointAttr{})
	h.ok(errors.Join(counted.Bind(count, fi.BindRecv), bound.Bind(got, fi.BindRecv), twice.Bind(x, 0)))
	for name, c := range map[string]struct{ err, want error }{
		"flags":           {fresh(h.b, fi.EndpointAttr{}).Bind(x, fi.BindRecv), fi.ErrBadFlags},
		"initiator":       {fresh(h.b, fi.EndpointAttr{InitiateOnly: true}).Bind(x, 0), fi.ErrNotImplemented},
		"another domain":  {fresh(h.a, fi.EndpointAttr{}).Bind(x, 0), fi.ErrForeign},
		"counter first":   {counted.Bind(x, 0), fi.ErrBusy},
		"queue first":     {bound.Bind(x, 0), fi.ErrBusy},
		"twice":           {twice.Bind(x, 0), fi.ErrBusy},
		"queue after":     {twice.Bind(got, fi.BindRecv), fi.ErrBusy},
		"counter after":   {twice.Bind(count, fi.BindRecv), fi.ErrBusy},
		"counter of both": {twice.Bind(count, fi.BindRecv|fi.BindRemoteRead), fi.ErrBusy},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}
