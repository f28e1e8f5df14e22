// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// talkerInto is newTalker with a queue that others share for what is received.
func talkerInto(t *testing.T, d *xdpfab.Domain, got *fi.CompletionQueue) *talker {
	t.Helper()
	ep, err := d.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	av, err1 := d.NewAddressVector()
	sent, err2 := d.NewCompletionQueue(fi.CQAttr{Size: 256})
	if err := errors.Join(err1, err2, ep.Bind(av, 0), ep.Bind(sent, fi.BindTransmit), ep.Bind(got, fi.BindRecv), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	return &talker{ep: ep, av: av, sent: sent, got: got, name: d.Name(ep.Number())}
}

// Receives that are posted leave places for the events of operations with data.
func TestReceivesLeavePlaces(t *testing.T) {
	da, db, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(da.CloseAll(), db.CloseAll()) })
	got, err := db.NewCompletionQueue(fi.CQAttr{Size: 16})
	if err != nil {
		t.Fatal(err)
	}
	a, b := newTalker(t, da, fi.EndpointAttr{}), talkerInto(t, db, got)
	to := a.knows(t, b)
	r, err := db.NewRegion("r", 4096)
	if err != nil {
		t.Fatal(err)
	}
	posted := 0
	for ; b.ep.Receive(&fi.Receive{Buf: make([]byte, 10)}, 0) == nil; posted++ {
	}
	if posted != 16 {
		t.Errorf("%d receives are posted, want as many as the queue has places: 16", posted)
	}
	if err := a.ep.Write(&fi.RMA{Buf: make([]byte, 8), Dest: to, Key: r.Key(), Data: 1}, fi.FlagRemoteCQData); err != nil {
		t.Fatal(err)
	}
	success(t, a.sent)
	if c := success(t, got); c.Data != 1 || c.Flags&fi.CompletionRecv != 0 {
		t.Errorf("%+v, want the event of the write", c)
	}
}
