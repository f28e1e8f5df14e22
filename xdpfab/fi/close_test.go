// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// fi_domain(3): closing a domain fails as long as anything on it is open. The error
// names what is open.
func TestCloseNamesChildren(t *testing.T) {
	fi.NotOverSockets(t, "it names peers by Ethernet addresses")
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer b.CloseAll()
	defer a.CloseAll()
	sep, err := b.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(err, sep.Enable()); err != nil {
		t.Fatal(err)
	}

	region, err := a.NewRegion("words", 4096)
	if err != nil {
		t.Fatal(err)
	}
	av, _ := a.NewAddressVector()
	cq, _ := a.NewCompletionQueue(fi.CQAttr{})
	counter, _ := a.NewCounter()
	ep, _ := a.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Bind(counter, fi.BindWrite), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	peer, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}

	open := []struct {
		name  string
		close func() error
	}{
		{"endpoint 7", ep.Close}, {"address vector", av.Close}, {"completion queue", cq.Close}, {"counter", counter.Close},
		{`region "words"`, region.Close}, {"peer 02:00:00:00:00:0b", peer.Close},
	}
	for i, closing := range open {
		err := a.Close()
		if !errors.Is(err, fi.ErrBusy) {
			t.Fatalf("with %d children: %v, want ErrBusy", len(open)-i, err)
		}
		for j, child := range open {
			if strings.Contains(err.Error(), child.name) != (j >= i) {
				t.Errorf("%v: names %s: want %v", err, child.name, j >= i)
			}
		}
		if err := closing.close(); err != nil {
			t.Errorf("%s: %v", closing.name, err)
		}
		if err := closing.close(); err != nil {
			t.Errorf("%s, for the second time: %v", closing.name, err)
		}
	}
	if err := errors.Join(a.Close(), a.Close(), a.CloseAll()); err != nil {
		t.Errorf("without children: %v", err)
	}
	if err := b.Close(); !errors.Is(err, fi.ErrBusy) || !strings.Contains(err.Error(), "endpoint 0") {
		t.Errorf("the other side: %v, want ErrBusy", err)
	}
	if err := errors.Join(b.CloseAll(), b.Close()); err != nil {
		t.Error(err)
	}
}

// With many children the message stays readable. Those of one name are named once.
func TestCloseNamesAFew(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer b.CloseAll()
	defer a.CloseAll()
	for range 100 {
		if _, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.NewCounter(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); !errors.Is(err, fi.ErrBusy) || !strings.Contains(err.Error(), "and 93 more") ||
		!strings.Contains(err.Error(), "counter (100 times); ") {
		t.Errorf("%v, want ErrBusy and a short list", err)
	}
}

// An object that is closed, itself or with its domain, takes nothing new.
func TestClosedObjects(t *testing.T) {
	for _, all := range []bool{false, true} {
		a, b, err := xdpfab.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		av, _ := a.NewAddressVector()
		cq, _ := a.NewCompletionQueue(fi.CQAttr{})
		counter, _ := a.NewCounter()
		used, _ := a.NewEndpoint(fi.EndpointAttr{})
		if err := errors.Join(used.Bind(av, 0), used.Bind(cq, 0), used.Bind(counter, fi.BindWrite), used.Enable()); err != nil {
			t.Fatal(err)
		}
		for _, close := range []func() error{av.Close, cq.Close, counter.Close} {
			if err := close(); !errors.Is(err, fi.ErrBusy) {
				t.Errorf("bound: %v, want ErrBusy", err)
			}
		}
		ep, _ := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if all {
			err = a.CloseAll()
		} else {
			err = errors.Join(used.Close(), av.Close(), cq.Close(), counter.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := av.Insert(ctx(t), b.Name(0)); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("insert into a closed vector: %v, want ErrClosed", err)
		}
		if err := cq.Wait(ctx(t), 1); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("wait on a closed queue: %v, want ErrClosed", err)
		}
		if err := counter.Wait(ctx(t), 1); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("wait on a closed counter: %v, want ErrClosed", err)
		}
		for _, x := range []struct {
			b     fi.Bindable
			flags fi.BindFlags
		}{{av, 0}, {cq, 0}, {counter, fi.BindRead}} {
			if err := ep.Bind(x.b, x.flags); !errors.Is(err, fi.ErrClosed) {
				t.Errorf("bind of a closed %T: %v, want ErrClosed", x.b, err)
			}
		}
		if err := errors.Join(a.CloseAll(), b.CloseAll()); err != nil {
			t.Error(err)
		}
	}
}

// A goroutine that waits on a queue or a counter is released when that is closed.
func TestCloseReleasesObjectWaiters(t *testing.T) {
	for _, m := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		f := setUp(t, fi.DomainAttr{Progress: m}, 64)
		counter, _ := f.client.NewCounter()
		ep, _ := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err := errors.Join(ep.Bind(f.av, 0), ep.Bind(f.cq, 0), ep.Bind(counter, fi.BindWrite), ep.Enable()); err != nil {
			t.Fatal(err)
		}
		errs := make(chan error)
		go func() { errs <- f.cq.Wait(ctx(t), 1) }()
		go func() { errs <- counter.Wait(ctx(t), 1) }()
		if err := errors.Join(ep.Close(), f.ep.Close(), f.cq.Close(), counter.Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, fi.ErrClosed) {
				t.Errorf("progress %d: %v, want ErrClosed", m, err)
			}
		}
	}
}

// Completions that were there when the queue was closed can still be read. Then a read
// says that it is closed, as a wait does.
func TestReadFromClosedQueue(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	if err := f.ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.cq.Wait(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.ep.Close(), f.cq.Close(), f.cq.Wait(ctx(t), 1)); err != nil {
		t.Errorf("a wait for what is there: %v", err)
	}
	var c [1]fi.Completion
	if n, err := f.cq.Read(c[:]); n != 1 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	waited := f.cq.Wait(ctx(t), 1)
	n, err := f.cq.Read(c[:])
	if n != 0 || !errors.Is(err, fi.ErrClosed) || err.Error() != waited.Error() ||
		!strings.HasSuffix(err.Error(), "this program has closed it: make another one") {
		t.Errorf("read %d, %v after the last completion, want what Wait says: %v", n, err, waited)
	}
}
