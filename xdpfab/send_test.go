// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// What is injected may be overwritten when the call returns, has at most as many bytes as
// fit, and makes no completion.
func TestInjectMessage(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, xdpfab.EndpointAttr{}), h.talker(h.b, xdpfab.EndpointAttr{})
		dest := h.knows(a, b)
		size := a.ep.Attr().InjectSize
		forms := []struct {
			inject       func(m *xdpfab.Message) error
			tagged, data bool
		}{{a.ep.InjectSend, false, false}, {a.ep.InjectSendData, false, true}, {a.ep.InjectTagged, true, false}, {a.ep.InjectTaggedData, true, true}}
		for i, f := range forms {
			for _, n := range []int{0, 1, size} {
				data := bytes.Repeat([]byte{byte(i + 1)}, n)
				m := xdpfab.Message{Buf: data, Dest: dest, Tag: 4, Data: math.MaxUint64 - uint64(i)}
				if n == size {
					m.Buf, m.Pieces = nil, [][]byte{data[:5], data[5:]}
				}
				h.ok(f.inject(&m))
				clear(data)
				r := xdpfab.Receive{Buf: make([]byte, size), Tag: 4, Context: i}
				receive := b.ep.Receive
				if f.tagged {
					receive = b.ep.ReceiveTagged
				}
				h.ok(receive(&r, 0))
				c := h.success(b.got, i)
				if !bytes.Equal(r.Buf[:c.Bytes], bytes.Repeat([]byte{byte(i + 1)}, n)) {
					h.Errorf("form %d of %d bytes: %+v, %v", i, n, c, r.Buf)
				}
				if has := c.Flags&xdpfab.CompletionRemoteCQData != 0; has != f.data || has && c.Data != m.Data || !has && c.Data != 0 {
					h.Errorf("form %d: data %#x, flags %v", i, c.Data, c.Flags)
				}
			}
			if err := f.inject(&xdpfab.Message{Buf: make([]byte, size+1), Dest: dest}); !errors.Is(err, xdpfab.ErrTooBig) {
				h.Errorf("form %d of %d bytes: %v", i, size+1, err)
			}
		}
		h.nothing(a.sent)
		// A failure does make a completion.
		h.ok(b.ep.Close())
		h.ok(a.ep.InjectTagged(&xdpfab.Message{Dest: dest}))
		h.failure(a.sent, nil, xdpfab.ErrNotExecuted)
	})
}

// With a queue that is bound selectively, the messages that ask for a completion make
// one, and so do those that fail.
func TestSelectiveMessages(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a := h.talker(h.a, xdpfab.EndpointAttr{OpFlags: xdpfab.FlagCompletion}, func(k *talker) error {
			return k.ep.Bind(k.sent, xdpfab.BindTransmit|xdpfab.BindSelective)
		})
		b := h.talker(h.b, xdpfab.EndpointAttr{})
		dest := h.knows(a, b)
		for i, flags := range []xdpfab.OpFlags{0, xdpfab.FlagMatchComplete, xdpfab.FlagInject, xdpfab.FlagMore} {
			h.ok(b.ep.Receive(&xdpfab.Receive{Context: i}, 0))
			h.ok(a.ep.Send(&xdpfab.Message{Dest: dest, Context: "quiet"}, flags))
			h.success(b.got, i)
		}
		for i, flags := range []xdpfab.OpFlags{xdpfab.FlagCompletion, xdpfab.FlagDefaults} {
			h.ok(a.ep.SendTagged(&xdpfab.Message{Dest: dest, Context: i}, flags))
			if c := h.success(a.sent, i); c.Flags != xdpfab.CompletionTagged|xdpfab.CompletionSend || c.Source != dest {
				h.Errorf("%+v", c)
			}
		}
		h.nothing(a.sent)
		h.ok(b.ep.Close())
		h.ok(a.ep.Send(&xdpfab.Message{Dest: dest, Context: "quiet"}, 0))
		h.failure(a.sent, "quiet", xdpfab.ErrNotExecuted)
	})
}

// A message completes when the target has it, in a receive or in memory of its own; with
// FlagMatchComplete when a receive has taken it, and those behind it wait.
func TestMatchComplete(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		for _, order := range []xdpfab.Order{0, xdpfab.OrderNone} {
			a, b := h.talker(h.a, xdpfab.EndpointAttr{MsgOrder: order}), h.talker(h.b, xdpfab.EndpointAttr{})
			dest := h.knows(a, b)
			for _, level := range []xdpfab.OpFlags{0, xdpfab.FlagInjectComplete, xdpfab.FlagTransmitComplete, xdpfab.FlagDeliveryComplete} {
				h.ok(a.ep.SendTagged(&xdpfab.Message{Buf: []byte("kept"), Dest: dest, Tag: 1, Context: "kept"}, level))
				h.success(a.sent, "kept")
			}
			for _, n := range []int{0, 3000} {
				h.ok(a.ep.SendTagged(&xdpfab.Message{Buf: make([]byte, n), Dest: dest, Tag: 2, Context: "matched"}, xdpfab.FlagMatchComplete))
				h.ok(a.ep.SendTagged(&xdpfab.Message{Dest: dest, Tag: 1, Context: "behind"}, 0))
				c := h.talker(h.a, xdpfab.EndpointAttr{}) // others do not wait for it
				h.toldTagged(c, h.knows(c, b), 3, "other")
				h.nothing(a.sent)
				h.ok(b.ep.ReceiveTagged(&xdpfab.Receive{Tag: 2}, xdpfab.FlagPeek)) // it is not here yet
				h.failure(b.got, nil, xdpfab.ErrNoMessage)
				h.ok(b.ep.ReceiveTagged(&xdpfab.Receive{Buf: make([]byte, n), Tag: 2, Context: "late"}, 0))
				h.success(b.got, "late")
				h.success(a.sent, "matched")
				h.success(a.sent, "behind")
			}
			h.ok(b.ep.ReceiveTagged(&xdpfab.Receive{Buf: make([]byte, 8), Tag: 4, Context: "early"}, 0))
			h.ok(a.ep.SendTagged(&xdpfab.Message{Dest: dest, Tag: 4, Context: "matched"}, xdpfab.FlagMatchComplete))
			h.success(b.got, "early")
			h.success(a.sent, "matched")
		}
	})
}

// Messages and all other operations of an endpoint to another apply in the order posted;
// without an order messages keep theirs, and a fence makes them wait.
func TestOrderOfMessages(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		region, err := h.b.NewRegion("words", 4096)
		h.ok(err)
		defer func() { h.ok(region.Close()) }()
		word, err := region.Uint64(0)
		h.ok(err)
		for _, order := range []xdpfab.Order{0, xdpfab.OrderNone} {
			a, b := h.talker(h.a, xdpfab.EndpointAttr{MsgOrder: order}), h.talker(h.b, xdpfab.EndpointAttr{})
			dest := h.knows(a, b)
			fence := xdpfab.OpFlags(0)
			if order == xdpfab.OrderNone {
				fence = xdpfab.FlagFence
			}
			word.Store(0)
			const n = 60
			buf := make([]byte, 8*n)
			for i := range n {
				h.ok(b.ep.Receive(&xdpfab.Receive{Buf: buf[8*i : 8*i+8], Context: i}, 0))
			}
			one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
			// Each round adds and sends: what a receive shows has been preceded by the
			// sum of its round.
			for i := range n {
				add := xdpfab.Msg{Buf: one, Dest: dest, Key: region.Key(), Datatype: xdpfab.Uint64, Op: xdpfab.Sum, Context: i}
				m := xdpfab.Message{Buf: []byte{byte(i)}, Dest: dest, Context: i}
				h.until("room", func() bool {
					err := a.ep.Atomic(&add, fence)
					if err != nil && !errors.Is(err, xdpfab.ErrAgain) {
						h.Fatal(err)
					}
					return err == nil
				})
				h.ok(a.ep.Send(&m, fence|xdpfab.FlagMore))
			}
			for i := range n {
				c := h.success(b.got, i)
				if c.Bytes != 1 || buf[8*i] != byte(i) || word.Load() < uint64(i+1) {
					h.Fatalf("order %v: message %d shows %d, and %d sums", order, i, buf[8*i], word.Load())
				}
			}
			for range 2 * n {
				if c := h.one(a.sent); c.Err != nil {
					h.Fatal(c.Err)
				}
			}
			// Messages alone, of all lengths, without a fence.
			for i := range n {
				h.ok(b.ep.Receive(&xdpfab.Receive{Buf: make([]byte, 4000), Context: i}, 0))
			}
			for i := range n {
				h.ok(a.ep.Send(&xdpfab.Message{Buf: make([]byte, i*i), Dest: dest, Context: i}, 0))
			}
			for i := range n {
				if c := h.success(b.got, i); c.Bytes != i*i {
					h.Fatalf("order %v: message %d has %d bytes", order, i, c.Bytes)
				}
				if c := h.one(a.sent); c.Err != nil {
					h.Fatal(c.Err)
				}
			}
		}
	})
}

// A message that is deferred is sent when its counter has reached the threshold.
func TestDeferredMessage(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		start, err := h.a.NewCounter()
		h.ok(err)
		a, b := h.talker(h.a, xdpfab.EndpointAttr{}), h.talker(h.b, xdpfab.EndpointAttr{})
		dest := h.knows(a, b)
		data := bytes.Repeat([]byte("deferred"), 1000)
		at := func(v uint64) *xdpfab.Threshold { return &xdpfab.Threshold{Counter: start, Value: v} }
		h.ok(a.ep.SendTagged(&xdpfab.Message{Pieces: [][]byte{data[:9], data[9:]}, Dest: dest, Tag: 1, Context: "long", Trigger: at(2)}, 0))
		h.ok(a.ep.Send(&xdpfab.Message{Buf: data[:4], Dest: dest, Context: "short", Trigger: at(1)}, xdpfab.FlagInject))
		h.ok(a.ep.Send(&xdpfab.Message{Dest: dest, Context: "never", Trigger: at(3)}, 0))
		h.told(a, dest, "now")
		buf := make([]byte, len(data))
		r := xdpfab.Receive{Buf: buf, Context: "r"}
		h.ok(b.ep.Receive(&r, 0))
		if c := h.success(b.got, "r"); string(buf[:c.Bytes]) != "now" {
			h.Errorf("%+v", c)
		}
		h.nothing(a.sent)
		start.Add(2)
		h.success(a.sent, "short")
		h.success(a.sent, "long")
		h.ok(errors.Join(b.ep.ReceiveTagged(&xdpfab.Receive{Buf: buf, Tag: 1, Context: "r"}, 0)))
		if h.success(b.got, "r"); !bytes.Equal(buf, data) {
			h.Error("not what was sent")
		}
		h.ok(b.ep.Receive(&r, 0))
		if c := h.success(b.got, "r"); string(buf[:c.Bytes]) != "defe" {
			h.Errorf("%+v", c)
		}
		h.ok(a.ep.Close())
		h.failure(a.sent, "never", xdpfab.ErrCancelled)
	})
}

// What cannot be sent is refused, with what would do.
func TestSendRefusals(t *testing.T) {
	h := pipeHall(t, xdpfab.DomainAttr{})
	a, b := h.talker(h.a, xdpfab.EndpointAttr{}), h.talker(h.b, xdpfab.EndpointAttr{})
	dest := h.knows(a, b)
	for name, c := range map[string]struct {
		m     *xdpfab.Message
		flags xdpfab.OpFlags
		want  error
	}{
		"nil":          {nil, 0, xdpfab.ErrLength},
		"peek":         {&xdpfab.Message{Dest: dest}, xdpfab.FlagPeek, xdpfab.ErrBadFlags},
		"many":         {&xdpfab.Message{Dest: dest}, xdpfab.FlagMultiRecv, xdpfab.ErrBadFlags},
		"directed":     {&xdpfab.Message{Dest: dest}, xdpfab.FlagDirected, xdpfab.ErrBadFlags},
		"commit":       {&xdpfab.Message{Dest: dest}, xdpfab.FlagCommitComplete, xdpfab.ErrNotImplemented},
		"nobody":       {&xdpfab.Message{Dest: 99}, 0, xdpfab.ErrUnknownPeer},
		"no address":   {&xdpfab.Message{Dest: xdpfab.NoAddress}, 0, xdpfab.ErrUnknownPeer},
		"both":         {&xdpfab.Message{Dest: dest, Buf: []byte{1}, Pieces: [][]byte{{1}}}, 0, xdpfab.ErrLength},
		"pieces":       {&xdpfab.Message{Dest: dest, Pieces: make([][]byte, xdpfab.MaxPieces+1)}, 0, xdpfab.ErrTooMany},
		"long inject":  {&xdpfab.Message{Dest: dest, Buf: make([]byte, 1000)}, xdpfab.FlagInject, xdpfab.ErrTooBig},
		"no threshold": {&xdpfab.Message{Dest: dest, Trigger: &xdpfab.Threshold{}}, 0, xdpfab.ErrForeign},
	} {
		for _, err := range []error{a.ep.Send(c.m, c.flags), a.ep.SendTagged(c.m, c.flags)} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
	for _, err := range []error{a.ep.InjectSend(nil), a.ep.InjectTaggedData(nil)} {
		if !errors.Is(err, xdpfab.ErrLength) {
			t.Errorf("inject nil: %v", err)
		}
	}
	// A send needs something that would tell of a failure.
	reads, err := h.a.NewCounter()
	h.ok(err)
	mute := h.talker(h.a, xdpfab.EndpointAttr{}, func(k *talker) error { return k.ep.Bind(reads, xdpfab.BindRead|xdpfab.BindWrite) })
	if err := mute.ep.Send(&xdpfab.Message{Dest: h.knows(mute, b)}, 0); !errors.Is(err, xdpfab.ErrNoCQ) {
		t.Errorf("without a queue: %v", err)
	}
	h.nothing(a.sent, b.got)
}

// Messages are deferred work like all operations: they move the counter that the next one
// waits for, are cancelled, and count as failures.
func TestDeferredMessageWork(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		start, err1 := h.a.NewCounter()
		end, err2 := h.a.NewCounter()
		h.ok(errors.Join(err1, err2))
		a, b := h.talker(h.a, xdpfab.EndpointAttr{}), h.talker(h.b, xdpfab.EndpointAttr{})
		dest := h.knows(a, b)
		queue := func(c *xdpfab.Counter, at uint64, tagged bool, text string) *xdpfab.Work {
			w := &xdpfab.Work{When: xdpfab.Threshold{Counter: c, Value: at}, Completion: end,
				Do: xdpfab.SendWork{Endpoint: a.ep, Message: &xdpfab.Message{Buf: []byte(text), Dest: dest, Tag: 5, Data: 6, Context: text}, Tagged: tagged, Flags: xdpfab.FlagRemoteCQData}}
			h.ok(h.a.QueueWork(w))
			return w
		}
		queue(end, 1, true, "second")
		queue(start, 1, false, "first")
		never := queue(start, 2, false, "never")
		h.nothing(a.sent)
		start.Add(1)
		h.success(a.sent, "first")
		h.success(a.sent, "second")
		for _, receive := range []func(*xdpfab.Receive, xdpfab.OpFlags) error{b.ep.Receive, b.ep.ReceiveTagged} {
			r := xdpfab.Receive{Buf: make([]byte, 8), Tag: 5, Context: "r"}
			h.ok(receive(&r, 0))
			if c := h.success(b.got, "r"); c.Data != 6 || c.Bytes < 5 {
				h.Errorf("%+v", c)
			}
		}
		h.ok(h.a.CancelWork(never))
		h.failure(a.sent, "never", xdpfab.ErrCancelled)
		h.until("the end is counted", func() bool { return end.Read() == 2 && end.ReadErr() == 1 })
		at := xdpfab.Threshold{Counter: start, Value: 9}
		for want, do := range map[error]xdpfab.Deferrable{
			xdpfab.ErrLength:         xdpfab.SendWork{Endpoint: a.ep},
			xdpfab.ErrForeign:        xdpfab.SendWork{Endpoint: b.ep, Message: &xdpfab.Message{}},
			xdpfab.ErrNotImplemented: xdpfab.SendWork{Endpoint: a.ep, Message: &xdpfab.Message{Dest: dest, Trigger: &at}},
			xdpfab.ErrUnknownPeer:    xdpfab.SendWork{Endpoint: a.ep, Message: &xdpfab.Message{Dest: 99}},
		} {
			if err := h.a.QueueWork(&xdpfab.Work{When: at, Do: do}); !errors.Is(err, want) {
				h.Errorf("%v, want %v", err, want)
			}
		}
	})
}
