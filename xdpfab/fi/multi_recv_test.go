// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A buffer for many messages takes them one behind another, each where its completion
// says, until too little is free; the last completion gives the buffer back.
func TestMultiReceive(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{MinMultiRecv: 100})
		dest := h.knows(a, b)
		send := func(n int) []byte {
			h.Helper()
			data := bytes.Repeat([]byte{byte(n)}, n)
			h.ok(a.ep.Send(&fi.Message{Buf: data, Dest: dest, Context: n}, 0))
			h.success(a.sent, n)
			return data
		}
		received := func(buf []byte, n, at int, last bool) {
			h.Helper()
			c := h.success(b.got, "many")
			want := fi.CompletionMsg | fi.CompletionRecv
			if last {
				want |= fi.CompletionMultiRecv
			}
			if c.Bytes != n || c.Offset != at || c.Flags != want || !bytes.Equal(buf[at:at+n], bytes.Repeat([]byte{byte(n)}, n)) {
				h.Errorf("%d bytes at %d, last %v: %+v", n, at, last, c)
			}
		}
		buf := make([]byte, 4000)
		post := func() { h.ok(b.ep.Receive(&fi.Receive{Buf: buf, Context: "many"}, fi.FlagMultiRecv)) }
		post()
		send(1000)
		received(buf, 1000, 0, false)
		send(0)
		received(buf, 0, 1000, false)
		send(2900) // of several frames; 100 bytes are left, which are enough
		received(buf, 2900, 1000, false)
		send(1)
		received(buf, 1, 3900, true)
		// Messages that wait are taken at once, and one that is too long is cut.
		send(3000)
		send(950)
		send(7)
		post()
		received(buf, 3000, 0, false)
		received(buf, 950, 3000, true)
		h.ok(b.ep.SetMinMultiRecv(1))
		if n := b.ep.MinMultiRecv(); n != 1 {
			h.Errorf("MinMultiRecv is %d", n)
		}
		post()
		received(buf, 7, 0, false)
		send(3990)
		received(buf, 3990, 7, false)
		h.ok(a.ep.Send(&fi.Message{Buf: []byte("end"), Dest: dest, Context: "end"}, 0))
		h.success(a.sent, "end")
		c := h.success(b.got, "many")
		if c.Bytes != 3 || c.Offset != 3997 || c.Flags&fi.CompletionMultiRecv == 0 {
			h.Errorf("what fills the buffer: %+v", c)
		}
		post()
		h.ok(a.ep.Send(&fi.Message{Buf: make([]byte, 4007), Dest: dest, Context: "long"}, 0))
		h.success(a.sent, "long")
		c = h.failure(b.got, "many", fi.ErrTruncated)
		if c.Bytes != 4000 || c.Overflow != 7 || c.Offset != 0 || c.Flags&fi.CompletionMultiRecv == 0 {
			h.Errorf("what is longer than the buffer: %+v", c)
		}
		// Tagged messages and others of different receives do not meet.
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: buf[:1000], Tag: 1, Ignore: 6, Context: "many"}, fi.FlagMultiRecv))
		for i, tag := range []uint64{3, 8, 5} {
			h.toldTagged(a, dest, tag, string(rune('a'+i)))
		}
		for i, tag := range []uint64{3, 5} {
			if c := h.success(b.got, "many"); c.Tag != tag || c.Offset != i || buf[i] != byte('a'+2*i) {
				h.Errorf("tag %d: %+v", tag, c)
			}
		}
		h.nothing(b.got)
	})
}

// A buffer for many messages takes as many as the completion queue has places for, and
// goes on when completions have been read.
func TestMultiReceiveFullQueue(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a := h.talker(h.a, fi.EndpointAttr{})
		b := h.talker(h.b, fi.EndpointAttr{})
		small, err := h.b.NewCompletionQueue(fi.CQAttr{Size: 4})
		h.ok(err)
		ep, err := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, ReceiveSize: 4})
		h.ok(err)
		h.ok(errors.Join(ep.Bind(b.av, 0), ep.Bind(b.sent, 0), ep.Bind(small, fi.BindRecv), ep.Enable()))
		dest, err := a.av.Insert(ctx(h.T), h.name(h.b, ep.Number()))
		h.ok(err)
		buf := make([]byte, 1<<16)
		h.ok(ep.Receive(&fi.Receive{Buf: buf}, fi.FlagMultiRecv))
		const n = 100
		for i := range n {
			h.ok(a.ep.Send(&fi.Message{Buf: bytes.Repeat([]byte{byte(i)}, 100+i), Dest: dest, Context: i}, 0))
		}
		at := 0
		for i := range n {
			c := h.one(small)
			if c.Err != nil || c.Bytes != 100+i || c.Offset != at || buf[at] != byte(i) || buf[at+c.Bytes-1] != byte(i) {
				h.Fatalf("message %d: %+v, want it at %d", i, c, at)
			}
			at += c.Bytes
		}
		for i := range n {
			h.success(a.sent, i)
		}
	})
}
