// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

const anyTag = ^uint64(0) // of Receive.Ignore

// Messages go into the receives that were posted first among those that they match, and
// receives take the messages that came first; tagged and untagged ones apart.
func TestMatchingOrder(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest := h.knows(a, b)
		buf := func() []byte { return make([]byte, 8) }
		// Receives are posted first.
		post := func(tag, ignore uint64, context string) []byte {
			r := fi.Receive{Buf: buf(), Tag: tag, Ignore: ignore, Context: context}
			h.ok(b.ep.ReceiveTagged(&r, 0))
			return r.Buf
		}
		bufs := [][]byte{post(0x100, 0xff, "1xx"), post(0x123, 0, "123"), post(0, anyTag, "any"), post(0x123, 0, "123 again")}
		plain := buf()
		h.ok(b.ep.Receive(&fi.Receive{Buf: plain, Context: "plain"}, 0))
		for i, want := range []struct {
			tag     uint64
			context string
			buf     []byte
		}{{0x923, "any", bufs[2]}, {0x123, "1xx", bufs[0]}, {0x123, "123", bufs[1]}, {0x123, "123 again", bufs[3]}} {
			text := string(rune('a' + i))
			h.toldTagged(a, dest, want.tag, text)
			c := h.success(b.got, want.context)
			if c.Tag != want.tag || c.Bytes != 1 || string(want.buf[:1]) != text || c.Flags != fi.CompletionTagged|fi.CompletionRecv {
				h.Errorf("message %s: %+v, %q", text, c, want.buf)
			}
		}
		h.told(a, dest, "plain")
		if c := h.success(b.got, "plain"); c.Tag != 0 || string(plain[:5]) != "plain" {
			h.Errorf("plain: %+v, %q", c, plain)
		}
		// Messages come first.
		for _, tag := range []uint64{1, 2, 3, 2} {
			h.toldTagged(a, dest, tag, string(rune('0'+tag)))
		}
		h.told(a, dest, "first")
		h.told(a, dest, "second")
		var tags []uint64
		for _, r := range []fi.Receive{{Tag: 2}, {Tag: 7, Ignore: anyTag}, {Tag: 0xf2, Ignore: 0xf0}, {Ignore: 3}} {
			r.Buf, r.Context = buf(), r.Tag
			h.ok(b.ep.ReceiveTagged(&r, 0))
			c := h.success(b.got, r.Tag)
			tags = append(tags, c.Tag)
			if r.Buf[0] != byte('0'+c.Tag) {
				h.Errorf("tag %d with %q", c.Tag, r.Buf)
			}
		}
		if !slices.Equal(tags, []uint64{2, 1, 2, 3}) {
			h.Errorf("received in the order %v", tags)
		}
		for _, want := range []string{"first", "second"} {
			r := fi.Receive{Buf: buf(), Context: want}
			h.ok(b.ep.Receive(&r, 0))
			if c := h.success(b.got, want); string(r.Buf[:c.Bytes]) != want {
				h.Errorf("%q: want %q", r.Buf, want)
			}
		}
	})
}

// A directed receive takes the messages of one endpoint, by whatever address that is
// known, and leaves those of others to other receives.
func TestDirectedReceive(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		one, two, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		stranger := h.talker(h.a, fi.EndpointAttr{})
		first, second, again := h.knows(b, one), h.knows(b, two), h.knows(b, one)
		post := func(tagged bool, source fi.Address, context string) error {
			r := fi.Receive{Buf: make([]byte, 8), Source: source, Context: context}
			if tagged {
				return b.ep.ReceiveTagged(&r, fi.FlagDirected)
			}
			return b.ep.Receive(&r, fi.FlagDirected)
		}
		for _, tagged := range []bool{false, true} {
			told := h.told
			if tagged {
				told = func(k *talker, to fi.Address, text string) { h.toldTagged(k, to, 0, text) }
			}
			h.ok(errors.Join(post(tagged, second, "two"), post(tagged, again, "one, by its other address"), post(tagged, first, "one"), post(tagged, fi.NoAddress, "anybody")))
			told(stranger, h.knows(stranger, b), "x")
			if c := h.success(b.got, "anybody"); c.Source != fi.NoAddress {
				h.Errorf("a stranger's: %+v", c)
			}
			told(one, h.knows(one, b), "1")
			if c := h.success(b.got, "one, by its other address"); c.Source != first {
				h.Errorf("the first one's: %+v, want source %d", c, first)
			}
			told(one, h.knows(one, b), "2")
			h.success(b.got, "one")
			told(one, h.knows(one, b), "held")
			h.nothing(b.got)
			told(two, h.knows(two, b), "3")
			if c := h.success(b.got, "two"); c.Source != second {
				h.Errorf("the second one's: %+v, want source %d", c, second)
			}
			h.ok(post(tagged, first, "late"))
			h.success(b.got, "late")
		}
		// A receive that is posted stays when the address goes.
		h.ok(post(false, second, "farewell"))
		h.ok(b.av.Remove(second))
		for _, unknown := range []fi.Address{second, 99} {
			if err := post(false, unknown, ""); !errors.Is(err, fi.ErrUnknownPeer) {
				h.Errorf("from address %d: %v", unknown, err)
			}
		}
		h.told(two, h.knows(two, b), "bye")
		if c := h.success(b.got, "farewell"); c.Source != fi.NoAddress {
			h.Errorf("of an address that was removed: %+v", c)
		}
		h.told(two, h.knows(two, b), "more")
		h.ok(b.ep.Receive(&fi.Receive{Buf: make([]byte, 8), Context: "rest"}, 0))
		h.success(b.got, "rest")
	})
}

// Of a message that is longer than its buffer, the beginning is there, and the entry is
// an error with the lengths of both parts.
func TestTruncatedMessage(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest, source := h.knows(a, b), h.knows(b, a)
		text := make([]byte, 5000)
		for i := range text {
			text[i] = byte(i * 7)
		}
		for _, late := range []bool{false, true} {
			for _, room := range [][]int{{}, {60}, {20, 0, 3000}} {
				r := fi.Receive{Tag: 5, Context: "short"}
				size := 0
				for _, n := range room {
					r.Pieces = append(r.Pieces, make([]byte, n, n+1))
					size += n
				}
				m := fi.Message{Buf: text, Dest: dest, Tag: 5, Context: "long", Data: 3}
				if late {
					h.ok(a.ep.SendTagged(&m, fi.FlagRemoteCQData))
					h.success(a.sent, "long")
				}
				h.ok(b.ep.ReceiveTagged(&r, 0))
				if !late {
					h.ok(a.ep.SendTagged(&m, fi.FlagRemoteCQData))
					h.success(a.sent, "long")
				}
				c := h.failure(b.got, "short", fi.ErrTruncated)
				if c.Bytes != size || c.Overflow != len(text)-size || c.Tag != 5 || c.Data != 3 || c.Source != source {
					h.Errorf("%+v: want %d bytes of %d", c, size, len(text))
				}
				if code, ok := fi.ErrnoOf(c.Err); !ok || code != fi.ETRUNC || errors.Is(c.Err, fi.ErrNotExecuted) {
					h.Errorf("code %v of %v", code.Name(), c.Err)
				}
				at := text
				for _, p := range r.Pieces {
					if !slices.Equal(p, at[:len(p)]) || cap(p) > len(p) && p[:len(p)+1][len(p)] != 0 {
						h.Error("the beginning of the message is not in the buffers")
					}
					at = at[len(p):]
				}
			}
		}
	})
}

// Receives can be taken back until a message goes into them.
func TestCancelReceive(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest := h.knows(a, b)
		x, y := new(int), new(int)
		buf := make([]byte, 8)
		h.ok(errors.Join(b.ep.Receive(&fi.Receive{Buf: buf, Context: x}, 0), b.ep.ReceiveTagged(&fi.Receive{Buf: buf, Tag: 4, Context: x}, 0),
			b.ep.Receive(&fi.Receive{Buf: buf, Context: y}, 0), b.ep.Receive(&fi.Receive{Buf: make([]byte, 100), Context: "many"}, fi.FlagMultiRecv)))
		h.ok(b.ep.Cancel(x))
		c := h.failure(b.got, x, fi.ErrCancelled)
		if code, _ := fi.ErrnoOf(c.Err); c.Flags != fi.CompletionMsg|fi.CompletionRecv || code != fi.Errno(syscall.ECANCELED) || c.Source != fi.NoAddress || c.Bytes != 0 {
			h.Errorf("the first one of two: %+v", c)
		}
		h.ok(b.ep.Cancel(x))
		if c := h.failure(b.got, x, fi.ErrCancelled); c.Flags != fi.CompletionTagged|fi.CompletionRecv {
			h.Errorf("the second one: %+v", c)
		}
		for _, context := range []any{x, nil, 7} {
			if err := b.ep.Cancel(context); !errors.Is(err, fi.ErrNoReceive) || !errors.Is(err, syscall.ENOENT) {
				h.Errorf("cancel %v: %v", context, err)
			}
		}
		h.told(a, dest, "y")
		h.success(b.got, y)
		h.told(a, dest, "1")
		h.success(b.got, "many")
		h.ok(b.ep.Cancel("many"))
		if c := h.failure(b.got, "many", fi.ErrCancelled); c.Flags != fi.CompletionMsg|fi.CompletionRecv|fi.CompletionMultiRecv {
			h.Errorf("a buffer for many: %+v", c)
		}
		h.told(a, dest, "2") // is kept
		h.nothing(b.got)
	})
}

// A context that cannot be compared comes back like any other, and is refused where it
// would have to be found.
func TestContextsNotComparable(t *testing.T) {
	h := pipeHall(t, fi.DomainAttr{})
	a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
	dest := h.knows(a, b)
	type pair struct{ x, y any }
	list := []int{1}
	for _, context := range []any{list, pair{1, list}, map[int]int{}} {
		h.ok(b.ep.Receive(&fi.Receive{Buf: make([]byte, 8), Context: context}, 0))
		for _, other := range []any{pair{1, 2}, pair{list, 1}, context} {
			err := b.ep.Cancel(other)
			if want := (other == any(pair{1, 2})); errors.Is(err, fi.ErrNoReceive) != want || errors.Is(err, fi.ErrContext) == want {
				t.Errorf("cancel %v: %v", other, err)
			}
		}
		h.told(a, dest, "held")
		if c := h.one(b.got); c.Err != nil || c.Context == nil {
			t.Errorf("%+v", c)
		}
		h.told(a, dest, "held")
		for _, flags := range []fi.OpFlags{fi.FlagPeek | fi.FlagClaim, fi.FlagClaim, fi.FlagClaim | fi.FlagDiscard} {
			if err := b.ep.Receive(&fi.Receive{Context: context}, flags); !errors.Is(err, fi.ErrContext) || !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%v with %v: %v", flags, context, err)
			}
		}
		h.ok(b.ep.Receive(&fi.Receive{Context: context}, fi.FlagPeek|fi.FlagDiscard))
		if c := h.one(b.got); c.Err != nil || c.Bytes != 4 {
			t.Errorf("%+v", c)
		}
	}
}

// When an endpoint is closed, the receives that are posted complete as cancelled, and
// peers that send to it learn that it is gone.
func TestCloseWithReceives(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		dest := h.knows(a, b)
		h.ok(errors.Join(b.ep.Receive(&fi.Receive{Context: 1}, 0), b.ep.ReceiveTagged(&fi.Receive{Tag: 1, Context: 2}, 0),
			b.ep.ReceiveTagged(&fi.Receive{Tag: 3, Buf: make([]byte, 100), Context: 3}, fi.FlagMultiRecv)))
		h.toldTagged(a, dest, 9, "held") // and dropped
		h.ok(b.ep.Close())
		released := 0
		for range 3 {
			c := h.one(b.got)
			if !errors.Is(c.Err, fi.ErrCancelled) || c.Endpoint != b.ep {
				h.Errorf("%+v", c)
			}
			if c.Flags&fi.CompletionMultiRecv != 0 {
				released++
			}
		}
		if released != 1 {
			h.Errorf("%d buffers for many were released, want 1", released)
		}
		for _, err := range []error{b.ep.Receive(&fi.Receive{}, 0), b.ep.Cancel(1)} {
			if !errors.Is(err, fi.ErrClosed) {
				h.Errorf("after Close: %v", err)
			}
		}
		h.nothing(b.got)
		h.ok(errors.Join(b.sent.Close(), b.got.Close()))
		h.ok(a.ep.Send(&fi.Message{Buf: []byte("x"), Dest: dest, Context: "late"}, 0))
		h.failure(a.sent, "late", fi.ErrNotExecuted)
	})
}

// What cannot be a receive is refused, with what would do.
func TestReceiveRefusals(t *testing.T) {
	h := pipeHall(t, fi.DomainAttr{})
	b := h.talker(h.b, fi.EndpointAttr{ReceiveSize: 4})
	buf := make([]byte, 100)
	const f = fi.FlagMultiRecv
	for name, c := range map[string]struct {
		r     *fi.Receive
		flags fi.OpFlags
		want  error
	}{
		"nil":                  {nil, 0, fi.ErrLength},
		"inject":               {&fi.Receive{}, fi.FlagInject, fi.ErrBadFlags},
		"fence":                {&fi.Receive{}, fi.FlagFence, fi.ErrBadFlags},
		"data":                 {&fi.Receive{}, fi.FlagRemoteCQData, fi.ErrBadFlags},
		"commit":               {&fi.Receive{}, commitComplete, fi.ErrNotImplemented},
		"discard alone":        {&fi.Receive{}, fi.FlagDiscard, fi.ErrBadFlags},
		"peek, claim, discard": {&fi.Receive{}, fi.FlagPeek | fi.FlagClaim | fi.FlagDiscard, fi.ErrBadFlags},
		"peek for many":        {&fi.Receive{}, fi.FlagPeek | f, fi.ErrBadFlags},
		"claim for many":       {&fi.Receive{Buf: buf}, fi.FlagClaim | f, fi.ErrBadFlags},
		"many pieces":          {&fi.Receive{Pieces: make([][]byte, fi.MaxPieces+1)}, 0, fi.ErrTooMany},
		"both":                 {&fi.Receive{Buf: buf, Pieces: [][]byte{buf}}, 0, fi.ErrLength},
		"many in pieces":       {&fi.Receive{Pieces: [][]byte{buf, buf}}, f, fi.ErrMultiRecv},
		"many in little":       {&fi.Receive{Buf: buf[:63]}, f, fi.ErrMultiRecv},
		"nothing claimed":      {&fi.Receive{Buf: buf, Context: 1}, fi.FlagClaim, fi.ErrNotClaimed},
		"nothing to discard":   {&fi.Receive{Buf: buf, Context: 1}, fi.FlagClaim | fi.FlagDiscard, fi.ErrNotClaimed},
	} {
		if err := errors.Join(b.ep.Receive(c.r, c.flags), b.ep.ReceiveTagged(c.r, c.flags)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for range 4 {
		h.ok(b.ep.Receive(&fi.Receive{}, 0))
	}
	if err := b.ep.ReceiveTagged(&fi.Receive{}, 0); err != fi.ErrAgain {
		t.Errorf("a fifth of four: %v", err)
	}
	deaf, err := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	h.ok(err)
	if err := deaf.Receive(&fi.Receive{}, 0); !errors.Is(err, fi.ErrNotEnabled) {
		t.Errorf("before Enable: %v", err)
	}
	h.ok(deaf.Enable())
	for _, err := range []error{deaf.Receive(&fi.Receive{}, 0), deaf.Cancel(1)} {
		if !errors.Is(err, fi.ErrNotReceiving) || !errors.Is(err, fi.ENOCQ) {
			t.Errorf("without a queue: %v", err)
		}
	}
	for _, bytes := range []int{0, -1} {
		if err := b.ep.SetMinMultiRecv(bytes); !errors.Is(err, fi.ErrCount) {
			t.Errorf("%d free bytes: %v", bytes, err)
		}
	}
	for name, attr := range map[string]fi.EndpointAttr{"receives": {ReceiveSize: -1}, "many receives": {ReceiveSize: 1 << 21}, "memory": {BufferedReceive: 1 << 31}, "free": {MinMultiRecv: -1}} {
		attr.Number = fi.AnyNumber
		if _, err := h.b.NewEndpoint(attr); !errors.Is(err, fi.ErrCount) && !errors.Is(err, fi.ErrTooBig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Counters count messages sent and received, and failures of both.
func TestMessageCounters(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		count := func(d *xdpfab.Domain) *fi.Counter {
			c, err := d.NewCounter()
			h.ok(err)
			return c
		}
		sent, got := count(h.a), count(h.b)
		a := h.talker(h.a, fi.EndpointAttr{}, sends, func(k *talker) error { return k.ep.Bind(sent, fi.BindTransmit) })
		b := h.talker(h.b, fi.EndpointAttr{}, func(k *talker) error { return k.ep.Bind(got, fi.BindRecv) }, sends)
		dest := h.knows(a, b)
		for range 3 {
			h.ok(b.ep.Receive(&fi.Receive{Buf: make([]byte, 4)}, 0))
		}
		h.told(a, dest, "fits")
		h.ok(a.ep.InjectSend(&fi.Message{Buf: []byte("fits"), Dest: dest}))
		h.told(a, dest, "too long")
		h.toldTagged(a, dest, 1, "tagged")
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: 1}, fi.FlagPeek))
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: 2}, fi.FlagPeek))
		deaf, err := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		h.ok(errors.Join(err, deaf.Enable()))
		to, err := a.av.Insert(ctx(h.T), h.name(h.b, deaf.Number()))
		h.ok(err)
		h.ok(a.ep.Send(&fi.Message{Dest: to, Context: "deaf"}, 0))
		c := h.failure(a.sent, "deaf", fi.ErrNoReceiver)
		if !errors.Is(c.Err, fi.ErrNotExecuted) || !errors.Is(c.Err, syscall.ENOSYS) {
			h.Errorf("to an endpoint that receives nothing: %v", c.Err)
		}
		h.until("counters", func() bool {
			return sent.Read() == 4 && sent.ReadErr() == 1 && got.Read() == 3 && got.ReadErr() == 2
		})
	})
}
