// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A message, or an operation with data, of a peer that is not in the address vector is an
// error with the peer's address, and otherwise as it should be. When the address is
// inserted, what comes has a source, and so has what has come and was not read.
func TestSourceErr(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{SourceErr: true})
		to := h.knows(a, b)
		receive := func(context any) []byte {
			buf := make([]byte, 10)
			h.ok(b.ep.Receive(&fi.Receive{Buf: buf, Context: context}, 0))
			return buf
		}
		buf := receive("strange")
		h.told(a, to, "hello")
		c := h.failure(b.got, "strange", fi.ErrUnknownPeer)
		var e *fi.OpError
		if !errors.As(c.Err, &e) || !errors.Is(c.Err, syscall.EADDRNOTAVAIL) || e.Peer != a.name {
			h.Fatalf("%v, from %q: want the address %q", c.Err, e.Peer, a.name)
		}
		if c.Source != fi.NoAddress || c.Overflow != 0 || string(buf[:c.Bytes]) != "hello" || c.Flags != fi.CompletionMsg|fi.CompletionRecv {
			h.Errorf("%+v, %q", c, buf)
		}
		h.ok(b.ep.Receive(&fi.Receive{Context: "peek"}, fi.FlagPeek))
		h.failure(b.got, "peek", fi.ErrNoMessage) // of nobody

		mem, err := mr.Memfd("words", 64)
		h.ok(err)
		region, err := h.b.Register(mem, mr.Options{Access: mr.RemoteRead | mr.RemoteWrite})
		h.ok(err)
		add := &fi.Msg{Dest: to, Key: region.Key(), Datatype: atomic.Uint64, Op: atomic.Sum, Buf: u64s(1), Data: 77}
		h.ok(a.ep.Atomic(add, fi.FlagRemoteCQData))
		if c := h.failure(b.got, nil, fi.ErrUnknownPeer); c.Data != 77 || c.Bytes != 8 || c.Flags&fi.CompletionRemoteCQData == 0 {
			h.Errorf("%+v", c)
		}
		h.success(a.sent, nil)

		receive("before")
		receive("after")
		h.told(a, to, "before")
		h.until("it is there", func() bool { return errors.Is(pending(b.got), fi.ErrErrorPending) })
		from, err := b.av.Insert(ctx(h.T), e.Peer)
		h.ok(err)
		h.told(a, to, "after")
		for _, context := range []string{"before", "after"} {
			if c := h.success(b.got, context); c.Source != from {
				h.Errorf("%+v, want source %v", c, from)
			}
		}
		h.ok(region.Close())
	})
}

// pending returns what a read says that has no room for a completion without an error.
func pending(cq *fi.CompletionQueue) error {
	var list [1]fi.Completion
	_, err := cq.Read(list[:])
	return err
}

// An endpoint has errors for unknown sources if the hints named them, and if it can tell.
func TestSourceErrAsked(t *testing.T) {
	h := pipeHall(t, fi.DomainAttr{})
	for _, asked := range []fi.Caps{0, fi.CapMsg, fi.CapSourceErr, fi.CapMsg | fi.CapSource | fi.CapSourceErr} {
		list, err := fi.GetInfo(ctx(t), &fi.Info{Caps: asked, Domain: fi.DomainInfo{Instance: h.b.Domain}})
		h.ok(err)
		attr := list[0].EndpointAttr()
		if want := asked&fi.CapSourceErr != 0; attr.SourceErr != want || (list[0].Caps&fi.CapSourceErr != 0) != want {
			t.Errorf("asked for %v: %v, %+v", asked, list[0].Caps, attr)
		}
	}
	b := h.talker(h.b, fi.EndpointAttr{SourceErr: true})
	if i := b.ep.Info(); i.Caps&fi.CapSourceErr == 0 {
		t.Errorf("in force: %v", i.Caps)
	}
	blind, err := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, SourceErr: true})
	h.ok(err)
	if err := blind.Enable(); !errors.Is(err, fi.ErrNoAV) {
		t.Error(err)
	}
	for _, attr := range []fi.EndpointAttr{{SourceErr: true, InitiateOnly: true}, {SourceErr: true, Type: fi.EndpointMsg}} {
		attr.Number = fi.AnyNumber
		if _, err := h.b.NewEndpoint(attr); !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("%+v: %v", attr, err)
		}
	}
}
