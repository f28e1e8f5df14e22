// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// What is injected may be overwritten when the call returns, has at most as many bytes as
// fit, and makes no completion.
func TestInjectMessage(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest := h.knows(a, b)
		size := a.ep.Attr().InjectSize
		forms := []struct {
			inject       func(m *fi.Message) error
			tagged, data bool
		}{{a.ep.InjectSend, false, false}, {a.ep.InjectSendData, false, true}, {a.ep.InjectTagged, true, false}, {a.ep.InjectTaggedData, true, true}}
		for i, f := range forms {
			for _, n := range []int{0, 1, size} {
				data := bytes.Repeat([]byte{byte(i + 1)}, n)
				m := fi.Message{Buf: data, Dest: dest, Tag: 4, Data: math.MaxUint64 - uint64(i)}
				if n == size {
					m.Buf, m.Pieces = nil, [][]byte{data[:5], data[5:]}
				}
				h.ok(f.inject(&m))
				clear(data)
				r := fi.Receive{Buf: make([]byte, size), Tag: 4, Context: i}
				receive := b.ep.Receive
				if f.tagged {
					receive = b.ep.ReceiveTagged
				}
				h.ok(receive(&r, 0))
				c := h.success(b.got, i)
				if !bytes.Equal(r.Buf[:c.Bytes], bytes.Repeat([]byte{byte(i + 1)}, n)) {
					h.Errorf("form %d of %d bytes: %+v, %v", i, n, c, r.Buf)
				}
				if has := c.Flags&fi.CompletionRemoteCQData != 0; has != f.data || has && c.Data != m.Data || !has && c.Data != 0 {
					h.Errorf("form %d: data %#x, flags %v", i, c.Data, c.Flags)
				}
			}
			if err := f.inject(&fi.Message{Buf: make([]byte, size+1), Dest: dest}); !errors.Is(err, fi.ErrTooBig) {
				h.Errorf("form %d of %d bytes: %v", i, size+1, err)
			}
		}
		h.nothing(a.sent)
		// A failure does make a completion.
		h.ok(b.ep.Close())
		h.ok(a.ep.InjectTagged(&fi.Message{Dest: dest}))
		h.failure(a.sent, nil, fi.ErrNotExecuted)
	})
}

// With a queue that is bound selectively, the messages that ask for a completion make
// one, and so do those that fail.
func TestSelectiveMessages(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a := h.talker(h.a, fi.EndpointAttr{OpFlags: fi.FlagCompletion}, func(k *talker) error {
			return k.ep.Bind(k.sent, fi.BindTransmit|fi.BindSelective)
		})
		b := h.talker(h.b, fi.EndpointAttr{})
		dest := h.knows(a, b)
		for i, flags := range []fi.OpFlags{0, fi.FlagMatchComplete, fi.FlagInject, fi.FlagMore} {
			h.ok(b.ep.Receive(&fi.Receive{Context: i}, 0))
			h.ok(a.ep.Send(&fi.Message{Dest: dest, Context: "quiet"}, flags))
			h.success(b.got, i)
		}
		for i, flags := range []fi.OpFlags{fi.FlagCompletion, fi.FlagDefaults} {
			h.ok(a.ep.SendTagged(&fi.Message{Dest: dest, Context: i}, flags))
			if c := h.success(a.sent, i); c.Flags != fi.CompletionTagged|fi.CompletionSend || c.Source != dest {
				h.Errorf("%+v", c)
			}
		}
		h.nothing(a.sent)
		h.ok(b.ep.Close())
		h.ok(a.ep.Send(&fi.Message{Dest: dest, Context: "quiet"}, 0))
		h.failure(a.sent, "quiet", fi.ErrNotExecuted)
	})
}

// A message completes when the target has it, in a receive or in memory of its own; with
// FlagMatchComplete when a receive has taken it, and those behind it wait.
func TestMatchComplete(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		for _, order := range []fi.Order{0, fi.OrderNone} {
			a, b := h.talker(h.a, fi.EndpointAttr{MsgOrder: order}), h.talker(h.b, fi.EndpointAttr{})
			dest := h.knows(a, b)
			for _, level := range []fi.OpFlags{0, fi.FlagInjectComplete, fi.FlagTransmitComplete, fi.FlagDeliveryComplete} {
				h.ok(a.ep.SendTagged(&fi.Message{Buf: []byte("kept"), Dest: dest, Tag: 1, Context: "kept"}, level))
				h.success(a.sent, "kept")
			}
			for _, n := range []int{0, 3000} {
				h.ok(a.ep.SendTagged(&fi.Message{Buf: make([]byte, n), Dest: dest, Tag: 2, Context: "matched"}, fi.FlagMatchComplete))
				h.ok(a.ep.SendTagged(&fi.Message{Dest: dest, Tag: 1, Context: "behind"}, 0))
				c := h.talker(h.a, fi.EndpointAttr{}) // others do not wait for it
				h.toldTagged(c, h.knows(c, b), 3, "other")
				h.nothing(a.sent)
				h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: 2}, fi.FlagPeek)) // it is not here yet
				h.failure(b.got, nil, fi.ErrNoMessage)
				h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: make([]byte, n), Tag: 2, Context: "late"}, 0))
				h.success(b.got, "late")
				h.success(a.sent, "matched")
				h.success(a.sent, "behind")
			}
			h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: make([]byte, 8), Tag: 4, Context: "early"}, 0))
			h.ok(a.ep.SendTagged(&fi.Message{Dest: dest, Tag: 4, Context: "matched"}, fi.FlagMatchComplete))
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
		for _, order := range []fi.Order{0, fi.OrderNone} {
			a, b := h.talker(h.a, fi.EndpointAttr{MsgOrder: order}), h.talker(h.b, fi.EndpointAttr{})
			dest := h.knows(a, b)
			fence := fi.OpFlags(0)
			if order == fi.OrderNone {
				fence = fi.FlagFence
			}
			word.Store(0)
			const n = 60
			buf := make([]byte, 8*n)
			for i := range n {
				h.ok(b.ep.Receive(&fi.Receive{Buf: buf[8*i : 8*i+8], Context: i}, 0))
			}
			one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
			// Each round adds and sends: what a receive shows has been preceded by the
			// sum of its round.
			for i := range n {
				add := fi.Msg{Buf: one, Dest: dest, Key: region.Key(), Datatype: atomic.Uint64, Op: atomic.Sum, Context: i}
				m := fi.Message{Buf: []byte{byte(i)}, Dest: dest, Context: i}
				h.until("room", func() bool {
					err := a.ep.Atomic(&add, fence)
					if err != nil && !errors.Is(err, fi.ErrAgain) {
						h.Fatal(err)
					}
					return err == nil
				})
				h.ok(a.ep.Send(&m, fence|fi.FlagMore))
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
				h.ok(b.ep.Receive(&fi.Receive{Buf: make([]byte, 4000), Context: i}, 0))
			}
			for i := range n {
				h.ok(a.ep.Send(&fi.Message{Buf: make([]byte, i*i), Dest: dest, Context: i}, 0))
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
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest := h.knows(a, b)
		data := bytes.Repeat([]byte("deferred"), 1000)
		at := func(v uint64) *fi.Threshold { return &fi.Threshold{Counter: start, Value: v} }
		h.ok(a.ep.SendTagged(&fi.Message{Pieces: [][]byte{data[:9], data[9:]}, Dest: dest, Tag: 1, Context: "long", Trigger: at(2)}, 0))
		h.ok(a.ep.Send(&fi.Message{Buf: data[:4], Dest: dest, Context: "short", Trigger: at(1)}, fi.FlagInject))
		h.ok(a.ep.Send(&fi.Message{Dest: dest, Context: "never", Trigger: at(3)}, 0))
		h.told(a, dest, "now")
		buf := make([]byte, len(data))
		r := fi.Receive{Buf: buf, Context: "r"}
		h.ok(b.ep.Receive(&r, 0))
		if c := h.success(b.got, "r"); string(buf[:c.Bytes]) != "now" {
			h.Errorf("%+v", c)
		}
		h.nothing(a.sent)
		start.Add(2)
		h.success(a.sent, "short")
		h.success(a.sent, "long")
		h.ok(errors.Join(b.ep.ReceiveTagged(&fi.Receive{Buf: buf, Tag: 1, Context: "r"}, 0)))
		if h.success(b.got, "r"); !bytes.Equal(buf, data) {
			h.Error("not what was sent")
		}
		h.ok(b.ep.Receive(&r, 0))
		if c := h.success(b.got, "r"); string(buf[:c.Bytes]) != "defe" {
			h.Errorf("%+v", c)
		}
		h.ok(a.ep.Close())
		h.failure(a.sent, "never", fi.ErrCancelled)
	})
}

// What cannot be sent is refused, with what would do.
func TestSendRefusals(t *testing.T) {
	h := pipeHall(t, fi.DomainAttr{})
	a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
	dest := h.knows(a, b)
	for name, c := range map[string]struct {
		m     *fi.Message
		flags fi.OpFlags
		want  error
	}{
		"nil":          {nil, 0, fi.ErrLength},
		"peek":         {&fi.Message{Dest: dest}, fi.FlagPeek, fi.ErrBadFlags},
		"many":         {&fi.Message{Dest: dest}, fi.FlagMultiRecv, fi.ErrBadFlags},
		"directed":     {&fi.Message{Dest: dest}, fi.FlagDirected, fi.ErrBadFlags},
		"commit":       {&fi.Message{Dest: dest}, commitComplete, fi.ErrNotImplemented},
		"nobody":       {&fi.Message{Dest: 99}, 0, fi.ErrUnknownPeer},
		"no address":   {&fi.Message{Dest: fi.NoAddress}, 0, fi.ErrUnknownPeer},
		"both":         {&fi.Message{Dest: dest, Buf: []byte{1}, Pieces: [][]byte{{1}}}, 0, fi.ErrLength},
		"pieces":       {&fi.Message{Dest: dest, Pieces: make([][]byte, fi.MaxPieces+1)}, 0, fi.ErrTooMany},
		"long inject":  {&fi.Message{Dest: dest, Buf: make([]byte, 1000)}, fi.FlagInject, fi.ErrTooBig},
		"no threshold": {&fi.Message{Dest: dest, Trigger: &fi.Threshold{}}, 0, fi.ErrForeign},
	} {
		for _, err := range []error{a.ep.Send(c.m, c.flags), a.ep.SendTagged(c.m, c.flags)} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
	for _, err := range []error{a.ep.InjectSend(nil), a.ep.InjectTaggedData(nil)} {
		if !errors.Is(err, fi.ErrLength) {
			t.Errorf("inject nil: %v", err)
		}
	}
	// A send needs something that would tell of a failure.
	reads, err := h.a.NewCounter()
	h.ok(err)
	mute := h.talker(h.a, fi.EndpointAttr{}, func(k *talker) error { return k.ep.Bind(reads, fi.BindRead|fi.BindWrite) })
	if err := mute.ep.Send(&fi.Message{Dest: h.knows(mute, b)}, 0); !errors.Is(err, fi.ErrNoCQ) {
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
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest := h.knows(a, b)
		queue := func(c *fi.Counter, at uint64, tagged bool, text string) *fi.Work {
			w := &fi.Work{When: fi.Threshold{Counter: c, Value: at}, Completion: end,
				Do: fi.SendWork{Endpoint: a.ep, Message: &fi.Message{Buf: []byte(text), Dest: dest, Tag: 5, Data: 6, Context: text}, Tagged: tagged, Flags: fi.FlagRemoteCQData}}
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
		for _, receive := range []func(*fi.Receive, fi.OpFlags) error{b.ep.Receive, b.ep.ReceiveTagged} {
			r := fi.Receive{Buf: make([]byte, 8), Tag: 5, Context: "r"}
			h.ok(receive(&r, 0))
			if c := h.success(b.got, "r"); c.Data != 6 || c.Bytes < 5 {
				h.Errorf("%+v", c)
			}
		}
		h.ok(h.a.CancelWork(never))
		h.failure(a.sent, "never", fi.ErrCancelled)
		h.until("the end is counted", func() bool { return end.Read() == 2 && end.ReadErr() == 1 })
		at := fi.Threshold{Counter: start, Value: 9}
		for want, do := range map[error]fi.Deferrable{
			fi.ErrLength:         fi.SendWork{Endpoint: a.ep},
			fi.ErrForeign:        fi.SendWork{Endpoint: b.ep, Message: &fi.Message{}},
			fi.ErrNotImplemented: fi.SendWork{Endpoint: a.ep, Message: &fi.Message{Dest: dest, Trigger: &at}},
			fi.ErrUnknownPeer:    fi.SendWork{Endpoint: a.ep, Message: &fi.Message{Dest: 99}},
		} {
			if err := h.a.QueueWork(&fi.Work{When: at, Do: do}); !errors.Is(err, want) {
				h.Errorf("%v, want %v", err, want)
			}
		}
	})
}
