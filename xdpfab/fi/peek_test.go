// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Peeking finds the oldest message that is kept and matches, tells all about it, and
// leaves it, claims it or drops it.
func TestPeek(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest, source := h.knows(a, b), h.knows(b, a)
		const peek, claim, discard = fi.FlagPeek, fi.FlagClaim, fi.FlagDiscard
		none := func(tag uint64, flags fi.OpFlags) {
			h.Helper()
			h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: tag, Context: "none"}, flags))
			c := h.failure(b.got, "none", fi.ErrNoMessage)
			if code, _ := fi.ErrnoOf(c.Err); code != fi.Errno(syscall.ENOMSG) || c.Flags != fi.CompletionTagged|fi.CompletionRecv || c.Bytes != 0 || c.Source != fi.NoAddress {
				h.Errorf("no message: %+v", c)
			}
		}
		// found peeks with success, or drops what is claimed.
		found := func(tag uint64, flags fi.OpFlags, context any, data uint64) {
			h.Helper()
			h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: tag & 0xf, Ignore: 0xf0, Context: context}, flags))
			c := h.success(b.got, context)
			if c.Tag != tag || c.Data != data || c.Bytes != int(data) || c.Source != source || c.Flags != fi.CompletionTagged|fi.CompletionRecv|fi.CompletionRemoteCQData {
				h.Errorf("%v of tag %#x, data %d: %+v", flags, tag, data, c)
			}
		}
		// taken receives what is claimed for the context, or matches.
		taken := func(tag uint64, flags fi.OpFlags, context any, data uint64) {
			h.Helper()
			buf := make([]byte, 5000)
			h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: tag, Ignore: 0xf0, Buf: buf, Context: context}, flags))
			if c := h.success(b.got, context); c.Data != data || c.Bytes != int(data) || buf[data-1] != byte(data) {
				h.Errorf("%v of data %d: %+v", flags, data, c)
			}
		}
		for _, flags := range []fi.OpFlags{peek, peek | claim, peek | discard} {
			none(1, flags)
		}
		send := func(tag uint64, data int) {
			buf := make([]byte, data)
			buf[data-1] = byte(data)
			h.ok(a.ep.SendTagged(&fi.Message{Buf: buf, Dest: dest, Tag: tag, Data: uint64(data), Context: data}, fi.FlagRemoteCQData))
			h.success(a.sent, data)
		}
		for i, tag := range []uint64{0x11, 0x21, 0x31, 0x41, 0x51, 0x61} {
			send(tag, 700*(i+1)) // one frame and several
		}
		none(2, peek)
		found(0x11, peek, 1, 700)
		found(0x11, peek, 2, 700) // it is still there
		found(0x11, peek|claim, "one", 700)
		found(0x21, peek|claim, "two", 1400) // what is claimed is not found again
		found(0x31, peek|discard, 3, 2100)
		found(0x41, peek, 4, 2800)
		found(0x41, peek|claim, "two", 2800)
		taken(1, 0, "plain", 3500)              // of those that are not claimed
		taken(0, claim, "two", 1400)            // whatever its tag
		found(0x41, claim|discard, "two", 2800) // the second one of the context
		for _, flags := range []fi.OpFlags{claim, claim | discard} {
			if err := b.ep.ReceiveTagged(&fi.Receive{Context: "two"}, flags); !errors.Is(err, fi.ErrNotClaimed) {
				h.Errorf("a third one: %v", err)
			}
		}
		taken(1, claim, "one", 700)
		taken(1, 0, "last", 4200)
		none(1, peek)
		// Messages without a tag are another matter, with the same flags.
		h.told(a, dest, "plain")
		send(1, 9)
		none(5, peek)
		h.ok(b.ep.Receive(&fi.Receive{Context: "x"}, peek|claim))
		if c := h.success(b.got, "x"); c.Bytes != 5 || c.Flags != fi.CompletionMsg|fi.CompletionRecv {
			h.Errorf("a message without a tag: %+v", c)
		}
		found(1, peek|claim, "y", 9)
		buf := make([]byte, 8)
		h.ok(b.ep.Receive(&fi.Receive{Buf: buf, Context: "x"}, claim))
		if h.success(b.got, "x"); string(buf[:5]) != "plain" {
			h.Errorf("%q", buf)
		}
		found(1, claim|discard, "y", 9)
		// What is claimed can be truncated, and directed peeks find those of one sender.
		send(7, 300)
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: 7, Source: source, Context: "y"}, peek|claim|fi.FlagDirected))
		h.success(b.got, "y")
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: buf, Context: "y"}, claim))
		if c := h.failure(b.got, "y", fi.ErrTruncated); c.Bytes != len(buf) || c.Overflow != 300-len(buf) {
			h.Errorf("%+v", c)
		}
		c := h.talker(h.a, fi.EndpointAttr{})
		h.toldTagged(c, h.knows(c, b), 3, "other")
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: 3, Source: source, Context: "z"}, peek|fi.FlagDirected))
		h.failure(b.got, "z", fi.ErrNoMessage)
	})
}
