// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// checkClosed checks the texts of calls on what is closed: what was called, who closed
// it, and what to do.
func checkClosed(t *testing.T, texts map[string]error) {
	t.Helper()
	for want, err := range texts {
		if !errors.Is(err, xdpfab.ErrClosed) || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// second returns an error that stands behind another result.
func second[T any](_ T, err error) error { return err }

// What is used after the end of its domain says what has ended the domain.
func TestUseOfAClosedDomain(t *testing.T) {
	for end, why := range map[string]struct {
		do   func(*xdpfab.Network) error
		says string
	}{
		"CloseAll": {func(w *xdpfab.Network) error { return w.Node(0).CloseAll() },
			"this program has closed the domain on 02:00:00:00:00:0a; open it again"},
		"Crash": {func(w *xdpfab.Network) error { return errors.Join(w.Crash(0), w.Crash(0)) },
			"Network.Crash has ended the domain on 02:00:00:00:00:0a; Network.Restart returns a new one"},
		"Restart": {func(w *xdpfab.Network) error { return second(w.Restart(0)) },
			"Network.Restart has ended the domain on 02:00:00:00:00:0a; Network.Restart returns a new one"},
		"Close": {(*xdpfab.Network).Close,
			"Network.Close has closed the domain on 02:00:00:00:00:0a; make another network"},
	} {
		t.Run(end, func(t *testing.T) {
			w := newNetwork(t, 2)
			d, addr := w.Node(0), w.Node(1).Name(0)
			word := wordOn(t, w, 0, 1)
			p, failed := d.Dial(ctx(t), addr)
			service, failed2 := d.Serve("own", 64)
			box, failed3 := d.NewMailbox(xdpfab.MailboxAttr{Number: 7})
			ep, failed4 := d.NewEndpoint(xdpfab.EndpointAttr{Number: 8})
			if err := errors.Join(failed, failed2, failed3, failed4, why.do(w)); err != nil {
				t.Fatal(err)
			}
			checkClosed(t, map[string]error{
				"xdpfab: " + why.says:                                  d.Err(),
				"xdpfab: Add of word 0 of region \"w\": " + why.says:   second(word.Add(ctx(t), 1)),
				"xdpfab: Guard of word 0 of region \"w\": " + why.says: second(word.Guard(ctx(t))),
				"xdpfab: mailbox 7: " + why.says:                       second(box.Receive(ctx(t), nil)),
				"xdpfab: endpoint 8: " + why.says:                      ep.Enable(),
				"xdpfab: region " + service.Region.String() + ": " + why.says: second(xdpfab.Wait(ctx(t), d, service.Region, 0,
					xdpfab.Equal[uint64](1))),
			})
			for name, err := range map[string]error{
				"Dial":        second(d.Dial(ctx(t), addr)),
				"Serve":       second(d.Serve("x", 64)),
				"NewMailbox":  second(d.NewMailbox(xdpfab.MailboxAttr{})),
				"NewRegion":   second(d.NewRegion("x", 64)),
				"NewCounter":  second(d.NewCounter()),
				"Send":        p.Send(ctx(t), nil),
				"Flush":       p.Flush(ctx(t)),
				"Watch":       p.Watch(ctx(t)),
				"Lookup":      second(p.Lookup(ctx(t), "w")),
				"Call":        second(p.Call(ctx(t), nil, nil)),
				"Rebind":      word.Rebind(ctx(t)),
				"Mailbox":     second(box.Dial(ctx(t), addr)),
				"NewResident": second(d.NewResidentRegion("x", 64)),
			} {
				checkText(t, name, err, why.says, xdpfab.ErrClosed)
			}
		})
	}
}

// An object that was closed on its own says so, and what to do.
func TestUseOfAClosedObject(t *testing.T) {
	w := newNetwork(t, 2)
	d, addr := w.Node(0), w.Node(1).Name(0)
	p, failed := d.Dial(ctx(t), addr)
	word, failed6 := xdpfab.Word[uint64](ctx(t), p, "w", 0)
	service, failed2 := d.Serve("own", 64)
	box, failed3 := d.NewMailbox(xdpfab.MailboxAttr{Number: 7})
	ep, failed4 := d.NewEndpoint(xdpfab.EndpointAttr{Number: 8})
	cntr, failed5 := d.NewCounter(fi.CounterAttr{})
	if err := errors.Join(failed, failed2, failed3, failed4, failed5, failed6); err != nil {
		t.Fatal(err)
	}
	region := service.Region.String()
	if err := errors.Join(p.Close(), service.Close(), box.Close(), ep.Close(), cntr.Close()); err != nil {
		t.Fatal(err)
	}
	const again = ": this program has closed it: make another one"
	checkClosed(t, map[string]error{
		"xdpfab: peer " + addr + " is closed: dial it again":                                p.Send(ctx(t), nil),
		"xdpfab: Add of word 0 of region \"w\": peer " + addr + " is closed: dial it again": second(word.Add(ctx(t), 1)),
		"xdpfab: mailbox 7" + again:                                                         second(box.Receive(ctx(t), nil)),
		"xdpfab: endpoint 8" + again:                                                        ep.Enable(),
		"xdpfab: counter" + again:                                                           cntr.Wait(ctx(t), 1),
		"xdpfab: region " + region + ": this program has closed it: register its memory again, or serve it again": second(
			xdpfab.Wait(ctx(t), d, service.Region, 0, xdpfab.Equal[uint64](1))),
	})
	if err := box.Close(); err != nil {
		t.Errorf("a mailbox is closed twice: %v", err)
	}
}

// A closed network says so when a node of it is to start again.
func TestRestartInAClosedNetwork(t *testing.T) {
	w := newNetwork(t, 1)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkClosed(t, map[string]error{
		"xdpfab: restart of node 0: this program has closed the network: make another one with NewNetwork": second(w.Restart(0)),
	})
}

// A mailbox that closes takes the peers with it that were dialled from it, and no others.
func TestMailboxClosesItsPeers(t *testing.T) {
	w := newNetwork(t, 2)
	d := w.Node(0)
	box, err := d.NewMailbox(xdpfab.MailboxAttr{Number: xdpfab.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	from, failed := box.Dial(ctx(t), w.Node(1).Name(0))
	own, failed2 := d.Dial(ctx(t), w.Node(1).Name(0))
	if err := errors.Join(failed, failed2, box.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Lookup(ctx(t), "w"); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("the mailbox's peer: %v", err)
	}
	if _, err := own.Lookup(ctx(t), "w"); err != nil {
		t.Errorf("another peer: %v", err)
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err == nil || strings.Contains(err.Error(), "peer ") {
		t.Errorf("close the domain: %v, want only its region to be open", err)
	}
}
