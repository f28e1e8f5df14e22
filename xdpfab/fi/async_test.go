// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The end of a registration is an event, with the region or an error.
func TestRegisterAsync(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUpBoth(t, a, fi.DomainAttr{Progress: a.Progress}, 64)
		key := uint64(7)
		o := mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite}
		if err := f.server.RegisterAsync(mustAlloc(t), o, nil); !errors.Is(err, fi.ErrNoEQ) {
			t.Errorf("without an event queue: %v, want ErrNoEQ", err)
		}
		q := newEQ(t, f.server, fi.EQAttr{})
		if err := f.server.RegisterAsync(mustAlloc(t), o, "first"); err != nil {
			t.Fatal(err)
		}
		e := event(t, q)
		if e.Kind != fi.EventMRComplete || e.Source != f.server.Domain || e.Context != "first" || e.Region == nil || e.Region.Key() != key {
			t.Fatalf("%+v", e)
		}
		if err := f.server.RegisterAsync(mustAlloc(t), o, "again"); err != nil {
			t.Fatal(err)
		}
		if e = event(t, q); e.Err == nil || e.Kind != fi.EventMRComplete || e.Context != "again" || e.Region != nil {
			t.Errorf("a key in use: %+v", e)
		}
		empty(t, q)
		progress(t, a, f.server)
		m := &fi.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum}
		if err := errors.Join(f.ep.Atomic(m, 0), f.cq.Wait(ctx(t), 1)); err != nil {
			t.Fatal(err)
		}
		if n, err := f.cq.Read(make([]fi.Completion, 1)); n != 1 || err != nil {
			t.Errorf("an operation on the region: %d, %v", n, err)
		}
	})
}

// The end of an insertion is an event, after those for the addresses that failed.
func TestInsertAsync(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		q := newEQ(t, f.client, fi.EQAttr{Size: 8})
		if err := f.av.InsertAsync(ctx(t), []string{f.server.Name(0), "nobody", f.server.Name(5)}, "all"); err != nil {
			t.Fatal(err)
		}
		e := event(t, q)
		if e.Err == nil || e.Kind != fi.EventAVComplete || e.Source != f.av || e.Context != "all" || e.Data != 1 {
			t.Errorf("the failure: %+v", e)
		}
		e = event(t, q)
		if e.Err != nil || e.Kind != fi.EventAVComplete || e.Source != f.av || e.Context != "all" || e.Data != 2 ||
			!slices.Equal(e.Addresses, []fi.Address{1, fi.NoAddress, 2}) {
			t.Fatalf("the end: %+v", e)
		}
		empty(t, q)
		for i, want := range map[int]string{0: f.server.Name(0), 2: f.server.Name(5)} {
			if name, err := f.av.Lookup(e.Addresses[i]); name != want || err != nil {
				t.Errorf("address %d is %q, %v, want %q", i, name, err, want)
			}
		}
		for range 20 { // no place of the queue is lost
			if err := f.av.InsertAsync(ctx(t), []string{f.server.Name(1), f.server.Name(2), "nobody", "nobody"}, nil); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				event(t, q)
			}
		}
		if err := f.av.InsertAsync(ctx(t), make([]string, 8), nil); !errors.Is(err, fi.ErrCount) {
			t.Errorf("more events than fit: %v, want ErrCount", err)
		}
		if err := f.av.InsertAsync(ctx(t), make([]string, 7), nil); err != fi.ErrAgain {
			t.Errorf("more events than there is room for: %v, want ErrAgain", err)
		}
	})
}

// A program that read the last event of an insertion may close the vector: nothing
// uses it any more.
func TestInsertAsyncIsOver(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	q := newEQ(t, a, fi.EQAttr{})
	for range 2000 {
		av, err := a.NewAddressVector()
		if err != nil {
			t.Fatal(err)
		}
		if err := av.InsertAsync(ctx(t), []string{a.Name(1)}, nil); err != nil {
			t.Fatal(err)
		}
		for found := false; !found; { // a reader that does not sleep meets the moment
			if _, found, err = q.Read(); err != nil {
				t.Fatal(err)
			}
		}
		if err := av.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Addresses are inserted over a real interface, where next hops have to be resolved, and
// epoll tells of the end.
func TestVethInsertAsync(t *testing.T) {
	a, b, pair := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	q := newEQ(t, a, fi.EQAttr{Wait: fi.WaitFD})
	av, _ := a.NewAddressVector()
	addrs := []string{b.Name(0), pair.B.IP4.String(), pair.B.IP6.String()}
	if err := av.InsertAsync(ctx(t), addrs, nil); err != nil {
		t.Fatal(err)
	}
	fd, _ := q.FD()
	if err := q.TryWait(); err == nil && !readable(t, fd, testnet.Patience) {
		t.Error("the descriptor is not readable")
	}
	if e := event(t, q); e.Data != 3 || e.Err != nil {
		t.Errorf("%+v, want 3 inserted", e)
	}
	cq, _ := a.NewCompletionQueue(fi.CQAttr{})
	ep, _ := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	for i := range addrs {
		if _, err := ep.Lookup(ctx(t), fi.Address(i), "r"); err != nil {
			t.Errorf("%s: %v", addrs[i], err)
		}
	}
}
