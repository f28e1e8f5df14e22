// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
	"github.com/xdpfab/xdpfab/xsk"
)

// A domain refuses an impossible attribute as ErrArgument, whichever it is.
func TestImpossibleAttributes(t *testing.T) {
	for name, attr := range map[string]xdpfab.DomainAttr{
		"Transport": {Transport: 9}, "Attach": {Attach: 9}, "XDP": {XDP: 9}, "Copy": {Copy: 9}, "Queues": {Queues: -1},
		"Threading": {Threading: 99}, "Progress": {Progress: 9}, "Cores": {Cores: []int{-1}}, "Spin": {Spin: -1},
		"Window": {Window: -1}, "GiveUp": {GiveUp: -1}, "GiveUp, long": {GiveUp: 1 << 62}, "RTOMin": {RTOMin: -1},
		"BaseRTT": {BaseRTT: -1}, "IdleRetire": {IdleRetire: time.Nanosecond}, "MRMode": {MRMode: 1 << 30},
		"TrafficClass": {TrafficClass: 200}, "AuthKey": {AuthKey: make(fi.AuthKey, mr.MaxAuthKey+1)},
		"BusyPoll": {BusyPoll: xsk.BusyPoll{Budget: -1}}, "EthernetOnly": {EthernetOnly: true, Transport: fi.TransportUDP},
		"ResidentSessions": {ResidentSessions: -1}, "ResidentLeave": {ResidentLeave: true},
		"ResidentPin": {ResidentPin: "/x", Attach: fi.AttachAlways},
		"Lend":        {Lend: -1}, "Borrow": {Borrow: true, Attach: fi.AttachNever}, "Lend, 1": {Lend: 1},
	} {
		_, _, piped := xdpfab.Pipe(attr)
		_, networked := xdpfab.NewNetwork(1, attr)
		_, opened := xdpfab.Open(t.Context(), "nothing0", attr)
		for _, err := range []error{piped, networked, opened} {
			if !errors.Is(err, xdpfab.ErrArgument) {
				t.Errorf("%s: %v, want ErrArgument", name, err)
			}
		}
	}
	_, _, err := xdpfab.Pipe(xdpfab.DomainAttr{Attach: xdpfab.AttachAlways})
	checkText(t, "no daemon serves a cable in memory", err, "AttachAlways, which takes an interface: want it left out, or "+
		"Open with the name of one", xdpfab.ErrArgument, xdpfab.ErrNotImplemented)
	if err == nil {
		t.Error("a Pipe with AttachAlways")
	}
}

// So do endpoints, mailboxes, handlers, and memory.
func TestImpossibleParts(t *testing.T) {
	d := setUp(t, xdpfab.DomainAttr{}, 64).client
	endpoint := func(a xdpfab.EndpointAttr) error { _, err := d.NewEndpoint(a); return err }
	mailbox := func(a xdpfab.MailboxAttr) error { _, err := d.NewMailbox(a); return err }
	handler := func(a xdpfab.HandlerAttr) error {
		_, err := d.Handle(a, func(context.Context, xdpfab.Sender, []byte) ([]byte, error) { return nil, nil })
		return err
	}
	register := func(m *mr.Memory, o mr.Options) error { _, err := d.Register(m, o); return err }
	serve := func(name string, size int) error { _, err := d.Serve(name, size); return err }
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"endpoint number": endpoint(xdpfab.EndpointAttr{Number: 1 << 16}), "endpoint type": endpoint(xdpfab.EndpointAttr{Type: 99}),
		"endpoint size": endpoint(xdpfab.EndpointAttr{Size: -1}), "endpoint receives": endpoint(xdpfab.EndpointAttr{ReceiveSize: -1}),
		"endpoint order": endpoint(xdpfab.EndpointAttr{MsgOrder: 1 << 40}), "endpoint flags": endpoint(xdpfab.EndpointAttr{OpFlags: 1 << 60}),
		"mailbox number": mailbox(xdpfab.MailboxAttr{Number: -7}), "mailbox receives": mailbox(xdpfab.MailboxAttr{Receives: -1}),
		"mailbox buffered": mailbox(xdpfab.MailboxAttr{Buffered: 1 << 40}),
		"handler number":   handler(xdpfab.HandlerAttr{Number: 1 << 16}), "handler requests": handler(xdpfab.HandlerAttr{Requests: -1}),
		"handler goroutines": handler(xdpfab.HandlerAttr{Requests: 3, Goroutines: 4}),
		"no memory":          register(nil, mr.Options{}), "memory offset": register(m, mr.Options{Offset: -1}),
		"memory rights": register(m, mr.Options{Access: 9}), "service size": serve("x", -1),
		"service name": serve("", 64),
	} {
		if !errors.Is(err, xdpfab.ErrArgument) {
			t.Errorf("%s: %v, want ErrArgument", name, err)
		}
	}
}

// What package mr refuses is found by the errors of this package, too.
func TestErrorsOfMemory(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.server.Register(m, mr.Options{Name: "mine", Offset: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, outside := r.Uint64(1 << 20)
	_, odd := r.Uint64(0)
	_, again := f.server.Register(m, mr.Options{Name: "mine"})
	held := m.Close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, closed := r.Uint64(0)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want, own error }{
		{outside, xdpfab.ErrOutOfBounds, mr.ErrOutOfBounds}, {odd, xdpfab.ErrMisaligned, mr.ErrMisaligned},
		{again, xdpfab.ErrBusy, mr.ErrNameInUse}, {held, xdpfab.ErrBusy, mr.ErrInUse},
		{closed, xdpfab.ErrClosed, mr.ErrClosed}, {m.Sync(), xdpfab.ErrClosed, mr.ErrClosed},
	} {
		if !errors.Is(c.got, c.want) || !errors.Is(c.got, c.own) {
			t.Errorf("%v: want it to be %q and %q", c.got, c.want, c.own)
		}
	}
}

// A program can test for an interface that there is not, whatever the transport.
func TestNoInterface(t *testing.T) {
	for _, way := range []fi.Transport{fi.TransportXDP, fi.TransportUDP, fi.TransportAuto} {
		_, err := xdpfab.Open(t.Context(), "nothing0", xdpfab.DomainAttr{Transport: way})
		if !errors.Is(err, xdpfab.ErrNoInterface) {
			t.Errorf("%v: %v, want ErrNoInterface", way, err)
		}
	}
}
