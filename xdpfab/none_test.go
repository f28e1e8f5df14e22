// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A program that has not looked at an error goes on with nil: every call says so, and
// that nothing was executed.
func TestNothingThere(t *testing.T) {
	w := newNetwork(t, 1)
	c, node := ctx(t), w.Node(0)
	var (
		none   xdpfab.RemoteRegion
		dom    *xdpfab.Domain
		peer   *xdpfab.Peer
		box    *xdpfab.Mailbox
		nobody *xdpfab.Cluster
	)
	word := xdpfab.WordAt[uint64](peer, none, 0)
	vector := xdpfab.VectorAt[uint64](&xdpfab.Peer{}, none)
	for name, call := range map[string]func() error{
		"Domain.Dial":       func() error { _, err := dom.Dial(c, "x"); return err },
		"Domain.Serve":      func() error { _, err := (&xdpfab.Domain{}).Serve("x", 8); return err },
		"Domain.NewMailbox": func() error { _, err := dom.NewMailbox(xdpfab.MailboxAttr{}); return err },
		"Domain.Handle":     func() error { _, err := dom.Handle(xdpfab.HandlerAttr{}, nil); return err },
		"Domain.Quiet":      func() error { return dom.Quiet(c) },
		"Domain.Statistics": func() error { _, err := dom.Statistics(); return err },
		"Domain.CloseAll":   func() error { return dom.CloseAll() },
		"Domain.Close":      func() error { return (&xdpfab.Domain{}).Close() },
		"Domain.Err":        func() error { <-dom.Done(); return dom.Err() },
		"Domain.NewRegion":  func() error { _, err := dom.NewRegion("x", 8); return err },
		"Domain.Register":   func() error { _, err := dom.Register(nil, mr.Options{}); return err },
		"Domain.SetFaults":  func() error { return dom.SetFaults(xdpfab.Faults{}) },
		"Domain.Stats":      func() error { _, err := dom.Stats(); return err },
		"Network.Close":     func() error { return (*xdpfab.Network)(nil).Close() },
		"zero Network":      func() error { return (&xdpfab.Network{}).Close() },
		"nil Pending":       func() error { _, err := (*xdpfab.Pending[uint64])(nil).Wait(c); return err },
		"zero Pending":      func() error { _, err := (&xdpfab.Pending[uint64]{}).Wait(c); return err },
		"Peer.Close":        func() error { return peer.Close() },
		"Peer.Watch":        func() error { return peer.Watch(c) },
		"Peer.Lookup":       func() error { _, err := peer.Lookup(c, "x"); return err },
		"Peer.Regions":      func() error { _, err := peer.Regions(c); return err },
		"Peer.Send":         func() error { return peer.Send(c, nil) },
		"Peer.Call":         func() error { _, err := peer.Call(c, nil, nil); return err },
		"Peer.Flush":        func() error { return peer.Flush(c) },
		"Peer.Read":         func() error { return peer.Read(c, none, 0, nil) },
		"Mailbox.Receive":   func() error { _, err := box.Receive(c, nil); return err },
		"Mailbox.Dial":      func() error { _, err := box.Dial(c, "x"); return err },
		"Mailbox.Close":     func() error { return box.Close() },
		"Handler.Close":     func() error { return (*xdpfab.Handler)(nil).Close() },
		"Service.Close":     func() error { return (&xdpfab.Service{}).Close() },
		"Cluster.Dial":      func() error { _, err := nobody.Dial(c, "x"); return err },
		"Cluster.Close":     func() error { return nobody.Close() },
		"no directory":      func() error { _, err := xdpfab.NewCluster(node, nil).Dial(c, "x"); return err },
		"nil Home":          func() error { _, err := xdpfab.Word[uint64](c, nil, "x", 0); return err },
		"nil Peer":          func() error { _, err := xdpfab.Word[uint64](c, peer, "x", 0); return err },
		"nil Cluster":       func() error { _, err := xdpfab.Vector[uint64](c, nobody, "x"); return err },
		"Wait":              func() error { _, err := xdpfab.Wait(c, dom, nil, 0, xdpfab.Equal[uint8](0)); return err },
		"Remote.Load":       func() error { _, err := word.Load(c); return err },
		"Remote.StartAdd":   func() error { _, err := word.StartAdd(c, 1).Wait(c); return err },
		"Vector.Store":      func() error { return vector.StoreRange(c, 0, nil) },
	} {
		err := call()
		if !errors.Is(err, xdpfab.ErrNotExecuted) || !errors.Is(err, xdpfab.ErrClosed) ||
			!strings.Contains(err.Error(), "is nil or a zero value: want one of ") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, makes, _ := strings.Cut(err.Error(), "want one of ") // NewCluster, BytesAt and the Start methods return no error
		fails := !strings.HasPrefix(makes, "NewCluster") && !strings.HasPrefix(makes, "a Start method") &&
			!strings.HasPrefix(makes, "Domain.Dial or NewCluster")
		if told := strings.Contains(makes, "whose error says why"); told != fails {
			t.Errorf("%s: %v; that it has an error is %t", name, err, fails)
		}
	}
	for _, name := range []string{peer.Addr(), dom.Name(0), (*xdpfab.Service)(nil).Name(),
		(*xdpfab.Mailbox)(nil).Name(), (&xdpfab.Mailbox{}).Name(), (*xdpfab.Handler)(nil).Name(), (&xdpfab.Handler{}).Name()} {
		if name != "" {
			t.Errorf("address %q", name)
		}
	}
}

// A call without a context says so, and does not panic.
func TestNoContext(t *testing.T) {
	w := newNetwork(t, 2)
	c, node := ctx(t), w.Node(0)
	p, err := node.Dial(c, w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	word, err := xdpfab.Word[uint64](c, p, "w", 0)
	if err != nil {
		t.Fatal(err)
	}
	vector, err := xdpfab.Vector[uint64](c, p, "w")
	if err != nil {
		t.Fatal(err)
	}
	box, err := node.NewMailbox(xdpfab.MailboxAttr{Number: 7})
	if err != nil {
		t.Fatal(err)
	}
	service, err := node.Serve("mine", 64)
	if err != nil {
		t.Fatal(err)
	}
	begun := word.StartAdd(c, 1)
	var none context.Context
	for name, call := range map[string]func() error{
		"Open":               func() error { _, err := xdpfab.Open(none, "lo", xdpfab.DomainAttr{}); return err },
		"Domain.Dial":        func() error { _, err := node.Dial(none, "02:00:00:00:00:0b"); return err },
		"Domain.Quiet":       func() error { return node.Quiet(none) },
		"Peer.Watch":         func() error { return p.Watch(none) },
		"Peer.Lookup":        func() error { _, err := p.Lookup(none, "x"); return err },
		"Peer.Regions":       func() error { _, err := p.Regions(none); return err },
		"Peer.Send":          func() error { return p.Send(none, nil) },
		"Peer.Call":          func() error { _, err := p.Call(none, nil, nil); return err },
		"Peer.Flush":         func() error { return p.Flush(none) },
		"Mailbox.Receive":    func() error { _, err := box.Receive(none, nil); return err },
		"Mailbox.Dial":       func() error { _, err := box.Dial(none, "02:00:00:00:00:0b"); return err },
		"Word":               func() error { _, err := xdpfab.Word[uint64](none, p, "w", 0); return err },
		"Wait":               func() error { _, err := xdpfab.Wait(none, node, service.Region, 0, xdpfab.Equal[uint8](1)); return err },
		"Remote.Add":         func() error { _, err := word.Add(none, 1); return err },
		"Remote.Rebind":      func() error { return word.Rebind(none) },
		"Remote.Guard":       func() error { _, err := word.Guard(none); return err },
		"Remote.StartAdd":    func() error { _, err := word.StartAdd(none, 1).Wait(c); return err },
		"Remote.WaitCompare": func() error { _, err := word.WaitCompare(none, atomic.Cswap, 77, 1); return err },
		"Pending.Wait":       func() error { _, err := begun.Wait(none); return err },
		"Vector.Load":        func() error { return vector.Load(none, []uint64{1}, []uint64{1}) },
	} {
		if err := call(); !errors.Is(err, xdpfab.ErrArgument) || !errors.Is(err, xdpfab.ErrNotExecuted) ||
			!strings.Contains(err.Error(), "the context is nil: want one, such as context.Background()") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What no call accepts is told by one error, whose text names it and what is wanted.
func TestWrongArguments(t *testing.T) {
	w := newNetwork(t, 1)
	node := w.Node(0)
	echo := func(_ context.Context, _ xdpfab.Sender, b []byte) ([]byte, error) { return b, nil }
	for want, call := range map[string]func() error{
		`bad address "02:00"`: func() error { _, err := node.Dial(ctx(t), "02:00"); return err },
		"endpoint number 70000: want 0..65535": func() error {
			_, err := node.NewMailbox(xdpfab.MailboxAttr{Number: 70000})
			return err
		},
		"MailboxAttr.Receives of -1: want 1..1048576, or 0 for 1024": func() error {
			_, err := node.NewMailbox(xdpfab.MailboxAttr{Receives: -1})
			return err
		},
		"MailboxAttr.Buffered of 1073741825 bytes: want at most 1073741824, 0 for 4194304, or less than 0 for none": func() error {
			_, err := node.NewMailbox(xdpfab.MailboxAttr{Buffered: 1<<30 + 1})
			return err
		},
		"endpoint: Size of -1: want 1..1048576, or 0 for 1024": func() error {
			_, err := node.NewEndpoint(xdpfab.EndpointAttr{Size: -1})
			return err
		},
		"xdpfab: impossible size: 0 bytes, want 1 to 2^47": func() error {
			_, err := mr.Alloc(0, mr.AllocOptions{})
			return err
		},
		"Handle without a function":                                                      func() error { _, err := node.Handle(xdpfab.HandlerAttr{}, nil); return err },
		"HandlerAttr.Requests of -1: want 1..65536, or 0 for 1024":                       func() error { _, err := node.Handle(xdpfab.HandlerAttr{Requests: -1}, echo); return err },
		"faults of packets from node 0 to itself, which no link carries: want two nodes": func() error { return w.SetFaults(0, 0, xdpfab.Faults{}) },
		"partition of nodes [] of a network of 1 cuts no link":                           func() error { return w.Partition() },
		"partition of nodes [0 0] of a network of 1 cuts no link":                        func() error { return w.Partition(0, 0) },
		"network of 0 nodes":                   func() error { _, err := xdpfab.NewNetwork(0); return err },
		"node 1 of a network of 1":             func() error { return w.Crash(1) },
		"Faults.Loss of 2: want a probability": func() error { return w.SetFaults(0, 0, xdpfab.Faults{Loss: 2}) },
		"GiveUp of 1ns: want at least 1ms":     func() error { _, _, err := xdpfab.Pipe(xdpfab.DomainAttr{GiveUp: 1}); return err },
		"GiveUp of -1ns":                       func() error { _, _, err := xdpfab.Pipe(xdpfab.DomainAttr{GiveUp: -1}); return err },
	} {
		if err := call(); !errors.Is(err, xdpfab.ErrArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want ErrArgument, and %q", err, want)
		}
	}
	if err := (*xdpfab.Network)(nil).Crash(0); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("no network: %v", err)
	}
	if _, err := (&xdpfab.Pending[uint64]{}).Wait(ctx(t)); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("no operation: %v", err)
	}
}

// An operation in the wrong form names the method for it.
func TestWrongForm(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0)
	_, fetched := w.Fetch(ctx(t), atomic.Cswap, 1)
	_, compared := w.Compare(ctx(t), atomic.Sum, 1, 1)
	_, undefined := xdpfab.WordAt[float64](p, xdpfab.RemoteRegion{Key: 1}, 0).Fetch(ctx(t), atomic.Bor, 1)
	for want, err := range map[string]error{
		"operation cswap takes a comparand: want Compare":                                  fetched,
		"operation sum takes no comparand: want Fetch":                                     compared,
		"operation read returns the word: want Fetch":                                      w.Apply(ctx(t), atomic.Read, 1),
		"operation bor is not defined on float64: atomic.Valid tells which operations are": undefined,
	} {
		if !errors.Is(err, xdpfab.ErrOpNotSupported) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v: %q", err, want)
		}
	}
}

// A field has bits.
func TestFieldWithoutBits(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0, nil)
	_, err = xdpfab.AddField(ctx(t), w, 3, 0, 1)
	checkText(t, "AddField", err, ": a field of 0 bits: want 1 to 64", xdpfab.ErrArgument, xdpfab.ErrNotExecuted)
}

// Open without a name, and Heal of no network, say what is wanted or do nothing.
func TestOpenWithoutName(t *testing.T) {
	(*xdpfab.Network)(nil).Heal()
	_, err := xdpfab.Open(ctx(t), "", xdpfab.DomainAttr{})
	checkText(t, "Open", err, "want one of those that `ip link` lists, such as eth0", fi.ErrNoInterface)
}

// Who wants a daemon and finds none hears how to have one, and how to do without.
func TestAttachWithoutDaemon(t *testing.T) {
	t.Setenv(fi.ControlEnv, "")
	_, err := xdpfab.Open(ctx(t), "lo", xdpfab.DomainAttr{Attach: fi.AttachAlways})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Skipf("there may be a daemon on lo: %v", err)
	}
	checkText(t, "Open", err, ": start xdpfabd on lo, or open it without a daemon: want AttachAuto or AttachNever", fi.ErrNoDaemon)
}

// A region that was never looked up is told as such.
func TestZeroRegion(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{}, 0).Load(ctx(t))
	for _, err := range []error{err, p.Write(ctx(t), xdpfab.RemoteRegion{}, 0, make([]byte, 8))} {
		if !errors.Is(err, xdpfab.ErrNoKey) || !errors.Is(err, xdpfab.ErrNotExecuted) ||
			!strings.HasSuffix(err.Error(), ": the RemoteRegion is a zero value: want one that Peer.Lookup has found") {
			t.Error(err)
		}
	}
}

// Peers find a service by its name, so it has one.
func TestServeWithoutName(t *testing.T) {
	w := newNetwork(t, 1)
	if _, err := w.Node(0).Serve("", 64); !errors.Is(err, mr.ErrName) {
		t.Errorf("%v, want mr.ErrName", err)
	}
}

// A wait that ends although its word is there, because the owner did not tell of its
// change, says so.
func TestWaitUntold(t *testing.T) {
	w := newNetwork(t, 1)
	own, err := w.Node(0).Serve("own", 64)
	if err != nil {
		t.Fatal(err)
	}
	word, err := own.Region.Uint64(3)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		v, err := xdpfab.Wait(ctx, w.Node(0), own.Region, 3, xdpfab.Equal[uint64](8))
		if v != 8 {
			t.Errorf("the value is %d, want 8", v)
		}
		ended <- err
	}()
	for own.Region.Watcher() == nil { // until it waits
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
	word.Store(8)
	cancel()
	const says = "and it is 8 now, which nobody told: call Changed of the region after changes of one's own"
	if err := <-ended; err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%v: want %q", err, says)
	}
}

// A wait that ends with its context says what it waited for, and what there was.
func TestWaitEndsWithItsContext(t *testing.T) {
	w := newNetwork(t, 1)
	own, err := w.Node(0).Serve("own", 64)
	if err != nil {
		t.Fatal(err)
	}
	word, err := own.Region.Uint64(3)
	if err != nil {
		t.Fatal(err)
	}
	word.Store(5)
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	v, err := xdpfab.Wait(short, w.Node(0), own.Region, 3, xdpfab.AtLeast[uint64](8))
	if v != 5 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d, %v: want 5, and the cause", v, err)
	}
	const says = `for word 3 of region "own" to be at least 8, and it was 5: have a peer change it, or give the context more time: context deadline exceeded`
	if !strings.HasPrefix(err.Error(), "xdpfab: waited ") || !strings.HasSuffix(err.Error(), says) {
		t.Errorf("%v: want it to end with %q", err, says)
	}
}
