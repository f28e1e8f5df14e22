// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/fabrictest"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Services of a domain share an endpoint, which ends with the last of them.
func TestServe(t *testing.T) {
	client, server, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer server.CloseAll()
	defer client.CloseAll()
	one, err := server.Serve("one", 64)
	if err != nil {
		t.Fatal(err)
	}
	two, err := server.Serve("two", 4096)
	if err != nil {
		t.Fatal(err)
	}
	if one.Name() != server.Name(0) || two.Name() != one.Name() {
		t.Errorf("services at %s and %s, want %s", one.Name(), two.Name(), server.Name(0))
	}
	if _, err := server.Serve("two", 64); err == nil {
		t.Error("a name was given twice")
	}
	p, err := client.Dial(ctx(t), two.Name())
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "two", 511)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := xdpfab.Word[uint64](ctx(t), p, "one", 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Add(ctx(t), 3); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if own, err := two.Region.Uint64(511); err != nil || own.Load() != 3 {
		t.Errorf("the owner does not see what the peer did: %v", err)
	}
	for range 2 {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Lookup(ctx(t), "one"); !errors.Is(err, xdpfab.ErrNoRegion) {
		t.Errorf("a service that was closed: %v", err)
	}
	_, err = gone.Load(ctx(t))
	checkText(t, "a word of a service that was closed", err, `: not executed: the region that was meant is gone: the peer `+
		`has closed it, registered it anew, or restarted: find it again by its name, with Rebind or Lookup`, xdpfab.ErrPeerRestarted)
	if n, err := w.Add(ctx(t), 1); n != 4 || err != nil {
		t.Errorf("another service ended with it: %d, %v", n, err)
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil { // ends the session, which the next Dial would share
		t.Error(err)
	}
	if _, err := client.Dial(ctx(t), two.Name()); !errors.Is(err, xdpfab.ErrRefused) {
		t.Errorf("dialling no service: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Errorf("something is left: %v", err)
	}
	if _, err := server.Serve("three", 64); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("on a closed domain: %v", err)
	}
}

// A program whose number 0 is taken serves at another one: beside an endpoint of its own,
// and as the guest of a daemon that serves.
func TestServeBesideAnother(t *testing.T) {
	client, host, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer host.CloseAll()
	defer client.CloseAll()
	ep, err := host.NewEndpoint(xdpfab.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*xdpfab.Domain{"own": host, "guest": fabrictest.Guest(t, host, xdpfab.DomainAttr{})} {
		s, err := d.Serve(name, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Name() == host.Name(0) {
			t.Errorf("%s: at %s, which is taken", name, s.Name())
		}
		p, err := client.Dial(ctx(t), s.Name())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w, err := xdpfab.Word[int64](ctx(t), p, name, 7)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n, err := w.Add(ctx(t), -1); n != -1 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Services come and go at the same time.
func TestServeConcurrently(t *testing.T) {
	client, server, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer server.CloseAll()
	defer client.CloseAll()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 20 {
				s, err := server.Serve(string(rune('a'+i)), 64)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := server.Close(); err != nil {
		t.Errorf("something is left: %v", err)
	}
}
