// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Messages to another endpoint of the same domain, and to the endpoint itself.
func TestMessagesWithinDomain(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{BufferedReceive: -1}), h.talker(h.a, fi.EndpointAttr{})
		for _, to := range []*talker{a, b} {
			dest, source := h.knows(a, to), h.knows(to, a)
			first := source
			if to == a { // which it knows twice
				first = dest
			}
			data, buf := bytes.Repeat([]byte("message"), 3000), make([]byte, 21000)
			for _, late := range []bool{true, false} {
				r := fi.Receive{Buf: buf, Context: "r", Source: source}
				if !late {
					h.ok(to.ep.Receive(&r, fi.FlagDirected))
				}
				h.ok(a.ep.Send(&fi.Message{Buf: data, Dest: dest, Context: "s"}, 0))
				if late {
					h.step()
					h.ok(to.ep.Receive(&r, fi.FlagDirected))
				}
				if c := h.success(to.got, "r"); c.Bytes != len(data) || !bytes.Equal(buf, data) || c.Source != first {
					h.Errorf("%+v", c)
				}
				clear(buf)
				h.success(a.sent, "s")
			}
		}
	})
}

// An alias sends and receives as its endpoint does, in its order, with default flags of
// its own.
func TestAliasOfTalker(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a := h.talker(h.a, fi.EndpointAttr{}, func(k *talker) error { return k.ep.Bind(k.sent, fi.BindSelective) })
		b := h.talker(h.b, fi.EndpointAttr{ReceiveFlags: fi.FlagMultiRecv})
		dest, source := h.knows(a, b), h.knows(b, a)
		loud, err := a.ep.Alias(fi.FlagCompletion)
		h.ok(err)
		ear, err := b.ep.Alias(0)
		h.ok(err)
		m := fi.Message{Buf: []byte("x"), Dest: dest, Tag: 1, Data: 2, Context: "m"}
		sends := []func() error{
			func() error { return a.ep.Send(&m, 0) },
			func() error { return loud.Send(&m, fi.FlagDefaults) },
			func() error { return loud.SendTagged(&m, fi.FlagDefaults) },
			func() error { return loud.InjectSend(&m) },
			func() error { return loud.InjectSendData(&m) },
			func() error { return loud.InjectTagged(&m) },
			func() error { return loud.InjectTaggedData(&m) },
		}
		for i, send := range sends {
			tagged := i == 2 || i > 4
			receive := ear.Receive
			if tagged {
				receive = ear.ReceiveTagged
			}
			h.ok(receive(&fi.Receive{Buf: make([]byte, 1), Tag: 1, Context: i}, 0))
			h.ok(send())
			if c := h.success(b.got, i); c.Endpoint != b.ep || c.Source != source || (c.Data == 2) != (i == 4 || i == 6) {
				h.Errorf("form %d: %+v", i, c)
			}
		}
		for range 2 {
			h.success(a.sent, "m")
		}
		h.nothing(a.sent)
		h.ok(ear.Receive(&fi.Receive{Context: "gone"}, 0))
		h.ok(ear.Cancel("gone"))
		h.failure(b.got, "gone", fi.ErrCancelled)
		// FlagDefaults of receives.
		h.ok(b.ep.Receive(&fi.Receive{Buf: make([]byte, 1000), Context: "many"}, fi.FlagDefaults))
		h.ok(errors.Join(loud.InjectSend(&m), loud.InjectSend(&m)))
		h.success(b.got, "many")
		if c := h.success(b.got, "many"); c.Offset != 1 {
			h.Errorf("%+v", c)
		}
		h.ok(errors.Join(ear.Close(), loud.Close()))
		for _, err := range []error{ear.Receive(&fi.Receive{}, 0), ear.Cancel(1), loud.Send(&m, 0), loud.InjectSend(&m)} {
			if !errors.Is(err, fi.ErrClosed) {
				h.Errorf("an alias that is closed: %v", err)
			}
		}
	})
}

// Each receive context of a scalable endpoint has receives of its own, and messages of
// all transmit contexts come from the scalable endpoint.
func TestScalableMessages(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		scalable := func(d *xdpfab.Domain, n int) (*fi.ScalableEndpoint, *fi.AddressVector) {
			s, err := d.NewScalableEndpoint(fi.ScalableAttr{Number: fi.AnyNumber, TXContexts: n, RXContexts: n})
			h.ok(err)
			av, err := d.NewAddressVector()
			h.ok(errors.Join(err, s.Bind(av)))
			return s, av
		}
		const n = 2
		mine, vector := scalable(h.a, n)
		theirs, back := scalable(h.b, n)
		insert := func(av *fi.AddressVector, d *xdpfab.Domain, s *fi.ScalableEndpoint) fi.Address {
			a, err := av.Insert(ctx(h.T), h.name(d, uint16(s.Attr().Number)))
			h.ok(err)
			return a
		}
		dest, source := insert(vector, h.b, theirs), insert(back, h.a, mine)
		type context struct {
			*fi.Endpoint
			*fi.CompletionQueue
		}
		var tx, rx []context
		for i := range n {
			t, err1 := mine.TransmitContext(i, fi.EndpointAttr{Size: 64})
			sent, err2 := h.a.NewCompletionQueue(fi.CQAttr{})
			r, err3 := theirs.ReceiveContext(i)
			got, err4 := h.b.NewCompletionQueue(fi.CQAttr{})
			h.ok(errors.Join(err1, err2, err3, err4, t.Bind(sent, 0), t.Enable(), r.Bind(got, fi.BindRecv), r.Enable()))
			tx, rx = append(tx, context{t, sent}), append(rx, context{r, got})
			if err := t.Receive(&fi.Receive{}, 0); !errors.Is(err, fi.ErrNotReceiving) {
				h.Errorf("a transmit context receives: %v", err)
			}
			if err := r.Send(&fi.Message{}, 0); !errors.Is(err, fi.ErrNoCQ) {
				h.Errorf("a receive context sends: %v", err)
			}
		}
		for to := range n {
			at, err := fi.RXAddress(dest, to)
			h.ok(err)
			for from := range n {
				text := fmt.Sprint(from, to)
				buf := make([]byte, 8)
				h.ok(tx[from].Send(&fi.Message{Buf: []byte(text), Dest: at, Context: text}, 0))
				h.success(tx[from].CompletionQueue, text)
				h.ok(rx[1-to].Receive(&fi.Receive{Context: "none"}, fi.FlagPeek))
				h.failure(rx[1-to].CompletionQueue, "none", fi.ErrNoMessage)
				h.ok(rx[to].Receive(&fi.Receive{Buf: buf, Source: source, Context: text}, fi.FlagDirected))
				if c := h.success(rx[to].CompletionQueue, text); string(buf[:c.Bytes]) != text || c.Source != source {
					h.Errorf("%s: %+v, %q", text, c, buf)
				}
			}
		}
	})
}

// Receives can be posted before a connection is made, and messages go both ways.
func TestReceiveBeforeConnect(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		s := newSwitchboard(b, fi.PassiveAttr{Number: fi.AnyNumber})
		caller := s.caller()
		got, err := s.client.NewCompletionQueue(fi.CQAttr{})
		s.ok(err)
		s.ok(errors.Join(caller.Bind(got, fi.BindRecv), caller.Enable()))
		buf := make([]byte, 16)
		s.ok(caller.Receive(&fi.Receive{Buf: buf, Source: 77, Context: "early"}, fi.FlagDirected)) // of the only peer
		s.ok(caller.Connect(ctx(s.T), s.pep.Name(), nil))
		e := s.next(s.far, fi.EventConnReq, s.pep)
		callee := s.callee(e.Request)
		s.ok(callee.Accept(ctx(s.T), nil))
		s.next(s.near, fi.EventConnected, caller)
		s.next(s.far, fi.EventConnected, callee)
		s.ok(callee.Send(&fi.Message{Buf: []byte("welcome"), Dest: 99, Context: "w"}, 0))
		if c := s.take(got, 1)[0]; c.Err != nil || c.Context != "early" || string(buf[:c.Bytes]) != "welcome" || c.Source != fi.NoAddress {
			s.Errorf("%+v, %q", c, buf)
		}
		// The callee's queue is for what it sends alone.
		s.ok(caller.SendTagged(&fi.Message{Context: "deaf"}, 0))
		if c := s.take(s.nearCQ, 1)[0]; !errors.Is(c.Err, fi.ErrNoReceiver) {
			s.Errorf("%+v", c)
		}
	})
}

// Messages by several queues with manual progress, under both models of threading.
func TestMessagesManualQueues(t *testing.T) {
	for _, model := range []fi.Threading{fi.ThreadSafe, fi.ThreadDomain} {
		t.Run(model.String(), func(t *testing.T) {
			manual := fi.DomainAttr{Progress: fi.ProgressManual, Threading: model}
			a, b, _ := onVeth(t, 3, manual, manual)
			h := &hall{t, a, b, (*xdpfab.Domain).Name}
			var from, to []*talker
			for range 3 { // endpoints take the queues in turn
				from, to = append(from, h.talker(a, fi.EndpointAttr{})), append(to, h.talker(b, fi.EndpointAttr{BufferedReceive: -1}))
			}
			const each = 30
			for i, x := range from {
				for j, y := range to {
					dest := h.knows(x, y)
					for n := range each {
						m := fi.Message{Buf: make([]byte, 100*n), Dest: dest, Tag: uint64(i), Context: [2]int{j, n}}
						h.ok(x.ep.SendTagged(&m, 0))
					}
				}
			}
			for i := range from {
				for _, y := range to {
					for n := range each {
						h.ok(y.ep.ReceiveTagged(&fi.Receive{Buf: make([]byte, 100*each), Tag: uint64(i), Context: n}, 0))
						if c := h.success(y.got, n); c.Bytes != 100*n {
							t.Fatalf("message %d of %d has %d bytes", n, i, c.Bytes)
						}
					}
				}
			}
			for _, x := range from {
				for range len(to) * each {
					if c := h.one(x.sent); c.Err != nil {
						t.Fatal(c.Err)
					}
				}
			}
		})
	}
}
