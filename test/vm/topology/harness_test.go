// SPDX-License-Identifier: Apache-2.0

//go:build linux

package topology

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take; only a failing test takes so long.
const patience = 60 * time.Second

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a side's interface until the test ends. Operations are not given up before
// anything else is: a virtual machine may stand still for seconds, and with it the peer.
func open(t *testing.T, s *testnet.Side, attr xdpfab.DomainAttr) (d *xdpfab.Domain) {
	t.Helper()
	attr.GiveUp = patience
	err := s.Do(func() (err error) {
		d, err = xdpfab.Open(context.Background(), s.IfName, attr)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	t.Cleanup(func() {
		if err := d.CloseAll(); err != nil {
			t.Errorf("%s: closing: %v", s.Name, err)
		}
	})
	return d
}

// serve makes a side serve region "r", of 4 KiB.
func serve(t *testing.T, s *testnet.Side, attr xdpfab.DomainAttr) *xdpfab.Domain {
	t.Helper()
	d := open(t, s, attr)
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	if _, err := d.Register(m, mr.Options{Name: "r", Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		t.Fatal(err)
	}
	ep, err := d.NewEndpoint(xdpfab.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// word is a word of region "r", as a client's domain sees it.
func word(t *testing.T, d *xdpfab.Domain, addr string, index uint64) xdpfab.Remote[uint64] {
	t.Helper()
	peer, err := d.Dial(limited(t), addr)
	if err != nil {
		t.Fatalf("dialling %s: %v", addr, err)
	}
	w, err := xdpfab.Word[uint64](limited(t), peer, "r", index)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// count adds 1 the given number of times and checks every value that comes back. Each
// operation has its own time: on a busy host a virtual machine that waits for timers
// needs a third of a second for one, and longer for all than anything may take.
func count(t *testing.T, w xdpfab.Remote[uint64], from, times uint64) {
	t.Helper()
	for i := range times {
		if n, err := within(t, func(ctx context.Context) (uint64, error) { return w.Add(ctx, 1) }); err != nil || n != from+i+1 {
			t.Fatalf("addition %d: %d, %v; want %d", i, n, err, from+i+1)
		}
	}
	if n, err := within(t, w.Load); err != nil || n != from+times {
		t.Fatalf("the sum is %d, %v; want %d", n, err, from+times)
	}
}

// within runs an operation with a context that lasts for patience.
func within(t *testing.T, op func(context.Context) (uint64, error)) (uint64, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return op(ctx)
}

// contains reports whether an error contains all of the words.
func contains(err error, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			return false
		}
	}
	return true
}
