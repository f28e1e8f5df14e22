// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// u64s encodes values, in memory that is aligned for them.
func u64s(values ...uint64) []byte {
	b := make([]byte, 0, 8*max(len(values), 1))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// sumTo is a sum to the buffer of the receive with a tag.
func sumTo(dest fi.Address, tag, offset uint64, values ...uint64) *fi.Msg {
	return &fi.Msg{Dest: dest, Key: tag, Offset: offset, Datatype: atomic.Uint64, Op: atomic.Sum, Buf: u64s(values...), Context: tag}
}

// An atomic goes to the buffer of the tagged receive that its tag matches, at an offset;
// the receive completes, and the forms that return values do.
func TestTaggedAtomic(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		to, from := h.knows(a, b), h.knows(b, a)
		buf := u64s(1, 2, 3)
		post := func(tag uint64) { h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: buf, Tag: tag, Context: tag}, 0)) }
		came := func(tag uint64, offset, bytes int, flags fi.CompletionFlags) {
			h.Helper()
			flags |= fi.CompletionAtomic | fi.CompletionTagged | fi.CompletionRecv
			if c := h.success(b.got, tag); c.Flags != flags || c.Bytes != bytes || c.Tag != tag || c.Source != from || c.Offset != offset {
				h.Errorf("received %+v: want %d bytes, flags %v, from %v", c, bytes, flags, from)
			}
		}
		holds := func(want ...uint64) {
			h.Helper()
			if !bytes.Equal(buf, u64s(want...)) {
				h.Errorf("the buffer is %v, want %v", buf, u64s(want...))
			}
		}

		post(7)
		h.ok(a.ep.Atomic(sumTo(to, 7, 8, 10, 20), fi.FlagTagged))
		if c := h.success(a.sent, uint64(7)); c.Flags != fi.CompletionAtomic|fi.CompletionWrite|fi.CompletionTagged || c.Bytes != 16 {
			h.Errorf("%+v", c)
		}
		came(7, 8, 16, 0)
		holds(1, 12, 23)

		fetch := sumTo(to, 8, 0, 5)
		fetch.Result, fetch.Data = make([]byte, 8), 99
		h.ok(a.ep.FetchAtomic(fetch, fi.FlagTagged|fi.FlagRemoteCQData)) // waits
		h.nothing(a.sent, b.got)
		post(8)
		if c := h.success(a.sent, uint64(8)); c.Flags != fi.CompletionAtomic|fi.CompletionRead|fi.CompletionTagged || before(fetch) != 1 {
			h.Errorf("%+v, found %d", c, before(fetch))
		}
		came(8, 0, 8, fi.CompletionRemoteCQData)
		holds(6, 12, 23)

		swap := sumTo(to, 9, 16, 50)
		swap.Op, swap.Compare, swap.Result = atomic.Cswap, u64s(23), make([]byte, 8)
		post(9)
		h.ok(a.ep.CompareAtomic(swap, fi.FlagTagged))
		h.success(a.sent, uint64(9))
		came(9, 16, 8, 0)
		holds(6, 12, 50)
		if before(swap) != 23 {
			h.Errorf("the comparison found %d", before(swap))
		}

		read := &fi.Msg{Dest: to, Key: 10, Datatype: atomic.Uint64, Op: atomic.Read, Pieces: &fi.Pieces{Result: [][]byte{make([]byte, 8), make([]byte, 16)}}, Context: uint64(10)}
		post(10)
		h.ok(a.ep.FetchAtomic(read, fi.FlagTagged|fi.FlagInject))
		h.success(a.sent, uint64(10))
		came(10, 0, 24, 0)
		if got := bytes.Join(read.Pieces.Result, nil); !bytes.Equal(got, buf) {
			h.Errorf("read %v, want %v", got, buf)
		}
	})
}

// Tagged atomics and messages match in the order sent; those without a result are kept
// for a receive, and can be looked at and claimed. Deferred ones start when they are due.
func TestTaggedAtomicOrder(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		to := h.knows(a, b)
		h.knows(b, a)
		for i := range uint64(3) {
			h.ok(a.ep.Atomic(sumTo(to, 1, 0, 1<<i), fi.FlagTagged))
			h.toldTagged2(a, to, 1, "between")
		}
		sum := u64s(0, 0)
		for i := range 3 {
			h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: 1, Context: "peek"}, fi.FlagPeek|fi.FlagClaim))
			if c := h.success(b.got, "peek"); c.Flags&fi.CompletionAtomic == 0 || c.Bytes != 8 {
				h.Errorf("peek: %+v", c)
			}
			h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: sum, Context: "peek"}, fi.FlagClaim))
			h.success(b.got, "peek")
			text := make([]byte, 16)
			h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: text, Tag: 1, Context: i}, 0))
			if c := h.success(b.got, i); c.Flags&fi.CompletionAtomic != 0 || string(text[:c.Bytes]) != "between" {
				h.Errorf("message %d: %+v", i, c)
			}
		}
		if !bytes.Equal(sum, u64s(7, 0)) {
			h.Errorf("the sum is %v, want 7", sum)
		}

		counter, err := h.a.NewCounter()
		h.ok(err)
		late := sumTo(to, 2, 8, 3)
		late.Trigger = &fi.Threshold{Counter: counter, Value: 1}
		h.ok(a.ep.Atomic(late, fi.FlagTagged|fi.FlagMatchComplete))
		h.nothing(a.sent)
		counter.Add(1)
		h.nothing(a.sent)
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: sum, Tag: 2, Context: "late"}, 0))
		h.success(a.sent, uint64(2))
		h.success(b.got, "late")
		if !bytes.Equal(sum, u64s(7, 3)) {
			h.Errorf("the sums are %v, want 7 and 3", sum)
		}
		h.ok(counter.Close())
	})
}

// toldTagged2 sends a message with a tag behind an atomic, and waits for both.
func (h *hall) toldTagged2(k *talker, to fi.Address, tag uint64, text string) {
	h.Helper()
	h.ok(k.ep.SendTagged(&fi.Message{Buf: []byte(text), Dest: to, Tag: tag, Context: text}, 0))
	h.success(k.sent, tag)
	h.success(k.sent, text)
}

// An atomic that does not fit the buffer of its receive changes nothing: the receive ends
// with the reason, and so does the atomic if it waits for that.
func TestTaggedAtomicMisfits(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		to := h.knows(a, b)
		h.knows(b, a)
		buf := u64s(1, 2)
		for i, c := range []struct {
			offset       uint64
			pieces       [][]byte
			theirs, ours error
		}{
			{16, [][]byte{buf}, fi.ErrTruncated, fi.ErrOutOfBounds},
			{1 << 63, [][]byte{buf}, fi.ErrTruncated, fi.ErrOutOfBounds},
			{4, [][]byte{buf}, fi.ErrMisaligned, fi.ErrMisaligned},
			{0, [][]byte{buf[:4], buf[8:]}, fi.ErrMisaligned, fi.ErrMisaligned},
		} {
			post := func() {
				h.ok(b.ep.ReceiveTagged(&fi.Receive{Pieces: c.pieces, Tag: 3, Context: i}, 0))
			}
			post()
			h.ok(a.ep.Atomic(sumTo(to, 3, c.offset, 5), fi.FlagTagged|fi.FlagMatchComplete))
			if done := h.failure(a.sent, uint64(3), c.ours); !errors.Is(done.Err, fi.ErrNotExecuted) {
				h.Error(done.Err)
			}
			if done := h.failure(b.got, i, c.theirs); done.Bytes != 0 || done.Overflow != 8 || done.Flags&fi.CompletionAtomic == 0 {
				h.Errorf("%+v", done)
			}
			post()
			h.ok(a.ep.Atomic(sumTo(to, 3, c.offset, 5), fi.FlagTagged)) // has its receive: that is all it says
			h.success(a.sent, uint64(3))
			h.failure(b.got, i, c.theirs)
		}
		if !bytes.Equal(buf, u64s(1, 2)) {
			h.Errorf("the buffer is %v", buf)
		}
	})
}

// As many elements fit as the query says, of every operation and datatype, and more are
// refused; so is what an atomic on a receive cannot have.
func TestTaggedAtomicLimits(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		to := h.knows(a, b)
		h.knows(b, a)
		h.ok(b.ep.ReceiveTagged(&fi.Receive{Tag: 1}, fi.FlagPeek)) // finds nothing
		h.failure(b.got, nil, fi.ErrNoMessage)
		buf, err := mr.Alloc(4096, mr.AllocOptions{})
		h.ok(err)
		defer func() { _ = buf.Close() }()
		for form, post := range map[atomic.Func]func(*fi.Msg, fi.OpFlags) error{atomic.Base: a.ep.Atomic, atomic.Fetch: a.ep.FetchAtomic, atomic.Compare: a.ep.CompareAtomic} {
			for op := range atomic.Op(atomic.NumOps) {
				for dt := range atomic.Datatype(atomic.NumDatatypes) {
					attr, err := h.a.QueryAtomic(form, dt, op, fi.FlagTagged)
					if (err == nil) != atomic.Valid(form, op, dt) {
						h.Fatalf("%v %v %v: %v", form, op, dt, err)
					}
					if err != nil {
						continue
					}
					message := func(n int) *fi.Msg {
						m := &fi.Msg{Dest: to, Key: 1, Datatype: dt, Op: op, Count: n, Context: dt}
						if op != atomic.Read {
							m.Buf = make([]byte, n*attr.Size)
						}
						if form != atomic.Base {
							m.Result = make([]byte, n*attr.Size)
						}
						if form == atomic.Compare {
							m.Compare = make([]byte, n*attr.Size)
						}
						return m
					}
					h.ok(b.ep.ReceiveTagged(&fi.Receive{Buf: buf.Bytes(), Tag: 1, Context: op}, 0))
					h.ok(post(message(attr.Count), fi.FlagTagged))
					h.success(a.sent, dt)
					if c := h.success(b.got, op); c.Bytes != attr.Count*attr.Size || attr.Count < 512/attr.Size {
						h.Fatalf("%v %v %v: %d elements: %+v", form, op, dt, attr.Count, c)
					}
					if err := post(message(attr.Count+1), fi.FlagTagged); !errors.Is(err, fi.ErrTooMany) {
						h.Fatalf("%d elements: %v", attr.Count+1, err)
					}
				}
			}
		}
		extents, meant := sumTo(to, 0, 0, 1), sumTo(to, 0, 0, 1)
		extents.RMA, meant.Incarnation = []mr.Extent{{Count: 1}}, 5
		for _, m := range []*fi.Msg{extents, meant} {
			if err := a.ep.Atomic(m, fi.FlagTagged); !errors.Is(err, fi.ErrNotImplemented) {
				h.Errorf("%+v: %v", m, err)
			}
		}
		if err := a.ep.Send(&fi.Message{Dest: to}, fi.FlagTagged); !errors.Is(err, fi.ErrBadFlags) {
			h.Error(err)
		}
		h.nothing(a.sent, b.got)
	})
}

// Of an endpoint that receives no messages, a tagged atomic learns so.
func TestTaggedAtomicWithoutReceiver(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		ep, err := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		h.ok(errors.Join(err, ep.Enable()))
		b.name = h.name(h.b, ep.Number())
		to := h.knows(a, b)
		h.ok(a.ep.Atomic(sumTo(to, 3, 0, 5), fi.FlagTagged))
		if c := h.failure(a.sent, uint64(3), fi.ErrNoReceiver); !errors.Is(c.Err, fi.ErrNotExecuted) {
			h.Error(c.Err)
		}
	})
}

// A mailbox has tagged atomics as it has messages.
func TestTaggedAtomicInMailbox(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
		box, err := h.b.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber})
		h.ok(err)
		defer func() { h.ok(box.Close()) }()
		b.name = h.name(h.b, box.Number())
		to := h.knows(a, b)
		h.ok(errors.Join(a.ep.Atomic(sumTo(to, 3, 8, 5), fi.FlagTagged), a.ep.Atomic(sumTo(to, 3, 16, 5), fi.FlagTagged)))
		h.success(a.sent, uint64(3))
		h.success(a.sent, uint64(3))
		buf := u64s(1, 2)
		if m, err := box.ReceiveTagged(ctx(t), 3, 0, buf); err != nil || !m.Atomic || !bytes.Equal(m.Bytes, u64s(7)) || !bytes.Equal(buf, u64s(1, 7)) {
			h.Errorf("%+v, %v; buffer %v", m, err, buf)
		}
		if m, err := box.ReceiveTagged(ctx(t), 3, 0, buf); !errors.Is(err, fi.ErrTruncated) || len(m.Bytes) != 0 {
			h.Errorf("%+v, %v", m, err)
		}
	})
}
