// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Messages that a guest has no room for, and atomics on receives that it has not posted,
// wait through a takeover, and come when there is a receive.
func TestTakeoverWithWaitingMessages(t *testing.T) {
	s, b := newSuccession(t)
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	got, err1 := g.NewCompletionQueue(fi.CQAttr{})
	ep, err2 := g.NewEndpoint(fi.EndpointAttr{Number: 5, BufferedReceive: -1})
	if err := errors.Join(err1, err2, ep.Bind(got, fi.BindRecv), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	av, err := b.NewAddressVector()
	if err != nil {
		t.Fatal(err)
	}
	dest, err := av.Insert(t.Context(), g.Name(5))
	if err != nil {
		t.Fatal(err)
	}
	sender := func() (*fi.Endpoint, *fi.CompletionQueue) {
		sent, err1 := b.NewCompletionQueue(fi.CQAttr{})
		ep, err2 := b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err := errors.Join(err1, err2, ep.Bind(av, 0), ep.Bind(sent, fi.BindTransmit), ep.Enable()); err != nil {
			t.Fatal(err)
		}
		return ep, sent
	}
	next := func(cq *fi.CompletionQueue) {
		t.Helper()
		if err := cq.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var c [1]fi.Completion
		if _, err := cq.Read(c[:]); err != nil {
			failed, _ := cq.ReadErr()
			t.Fatalf("%v: %+v", err, failed)
		}
	}
	mails, mailed := sender()
	if err := mails.Send(&fi.Message{Buf: []byte("short"), Dest: dest}, 0); err != nil {
		t.Fatal(err)
	}
	next(mailed) // it takes no memory, so it is held
	fetches, fetched := sender()
	result := make([]byte, 8)
	long := make([]byte, 3000)
	if err := errors.Join(mails.Send(&fi.Message{Buf: long, Dest: dest}, 0),
		fetches.FetchAtomic(&fi.Msg{Dest: dest, Key: 9, Buf: []byte("12345678"), Result: result, Datatype: atomic.Uint64, Op: atomic.Bxor}, fi.FlagTagged)); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the atomic is announced", func() bool { return ep.Messages() == 2 })
	s.next()
	buf, room := []byte("original"), make([]byte, 4000)
	if err := ep.ReceiveTagged(&fi.Receive{Tag: 9, Buf: buf}, 0); err != nil {
		t.Fatal(err)
	}
	next(fetched)
	next(got)
	if string(result) != "original" || buf[0] != 'o'^'1' {
		t.Errorf("found %q, and left %q", result, buf)
	}
	s.next()
	for range 2 {
		if err := ep.Receive(&fi.Receive{Buf: room}, 0); err != nil {
			t.Fatal(err)
		}
		next(got)
	}
	next(mailed)
	if err := b.CloseAll(); err != nil {
		t.Error(err)
	}
}
