// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// avUser returns an endpoint with an address vector and a completion queue.
func avUser(t *testing.T, d *xdpfab.Domain, av *fi.AddressVector) (*fi.Endpoint, *fi.CompletionQueue) {
	t.Helper()
	cq, err := d.NewCompletionQueue(fi.CQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := d.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	return ep, cq
}

// addAt adds 1 to a word at an address, and waits for it.
func addAt(t *testing.T, ep *fi.Endpoint, cq *fi.CompletionQueue, dest fi.Address, key uint64) error {
	t.Helper()
	err := ep.Atomic(&fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Dest: dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum}, fi.FlagDefaults)
	if err != nil {
		return err
	}
	if err := cq.Wait(ctx(t), 1); err != nil {
		return err
	}
	done := make([]fi.Completion, 1)
	if n, err := cq.Read(done); n != 1 || err != nil {
		return fmt.Errorf("%d completions, %w", n, err)
	}
	if done[0].Source != dest {
		t.Errorf("the completion is of address %d, want %d", done[0].Source, dest)
	}
	return nil
}

// Over a real network: what one user of a named address vector inserts, another one on
// another interface uses under the same address, by raw Ethernet and by UDP. The vector
// is gone with its last user.
func TestVethSharedAV(t *testing.T) {
	testnet.Require(t)
	star := testnet.NewStar(t, 3, testnet.Options{})
	var doms []*xdpfab.Domain
	for _, s := range star.Sides {
		err := s.Do(func() error {
			d, err := xdpfab.Open(ctx(t), s.IfName, fi.DomainAttr{})
			doms = append(doms, d)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer doms[len(doms)-1].CloseAll()
	}
	server := doms[0]
	region, err := server.NewRegion("r", 64)
	if err != nil {
		t.Fatal(err)
	}
	target, err := server.NewEndpoint(fi.EndpointAttr{Number: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Enable(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test-%d", os.Getpid())
	if _, err := doms[2].NewAddressVector(fi.AVAttr{Name: name, ReadOnly: true}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a reader of a vector that there is not: %v", err)
	}
	maker, err := doms[1].NewAddressVector(fi.AVAttr{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := doms[2].NewAddressVector(fi.AVAttr{Name: name, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	ep, cq := avUser(t, doms[2], reader)
	own, ownCQ := avUser(t, doms[1], maker)
	if err := addAt(t, ep, cq, 0, region.Key()); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("an address that nobody has inserted: %v", err)
	}
	for i, text := range []string{server.Name(3), star.Sides[0].IP4.String() + "/3", star.Sides[0].IP6.String() + "/3"} {
		a, err := maker.Insert(ctx(t), text)
		if err != nil || int(a) != i {
			t.Fatalf("inserted as %d, %v; want %d", a, err, i)
		}
		if got, err := reader.Lookup(a); got != text || err != nil {
			t.Errorf("the reader has %q, %v; want %q", got, err, text)
		}
		if err := errors.Join(addAt(t, ep, cq, a, region.Key()), addAt(t, own, ownCQ, a, region.Key())); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if w, err := region.Uint64(0); err != nil || w.Load() != 6 {
		t.Errorf("the sum is %d, %v; want 6", w.Load(), err)
	}
	if _, err := reader.Insert(ctx(t), server.Name(3)); !errors.Is(err, syscall.EACCES) {
		t.Errorf("a reader inserts: %v", err)
	}
	if err := reader.Remove(0); !errors.Is(err, syscall.EACCES) {
		t.Errorf("a reader removes: %v", err)
	}
	if err := maker.Remove(1); err != nil {
		t.Fatal(err)
	}
	if err := addAt(t, own, ownCQ, 1, region.Key()); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("an address that was removed: %v", err)
	}
	late, lateCQ := avUser(t, doms[2], reader)
	if err := addAt(t, late, lateCQ, 1, region.Key()); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("an address that another user has removed: %v", err)
	}
	if err := addAt(t, late, lateCQ, 2, region.Key()); err != nil {
		t.Errorf("an address that is left: %v", err)
	}
	for _, d := range doms[1:] {
		if err := d.CloseAll(); err != nil {
			t.Error(err)
		}
	}
	if _, err := server.NewAddressVector(fi.AVAttr{Name: name, ReadOnly: true}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("after the last user: %v, want the vector gone", err)
	}
}

// Several users may insert, also asynchronously, and none gets the number of another. Bad
// attributes are refused, and a vector that is closed is let go of once.
func TestSharedAV(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	attr := fi.AVAttr{Name: fmt.Sprintf("pipe-%d", os.Getpid())}
	one, err := a.NewAddressVector(attr)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.NewAddressVector(attr)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for j, av := range []*fi.AddressVector{one, other} {
			if n, err := av.Insert(ctx(t), b.Name(uint16(i))); int(n) != 2*i+j || err != nil {
				t.Errorf("inserted as %d, %v; want %d", n, err, 2*i+j)
			}
		}
	}
	q, err := a.Fabric().NewEventQueue(fi.EQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := a.BindEQ(q); err != nil {
		t.Fatal(err)
	}
	if err := one.InsertAsync(ctx(t), []string{b.Name(7), b.Name(8)}, nil); err != nil {
		t.Fatal(err)
	}
	if err := q.Wait(ctx(t)); err != nil {
		t.Fatal(err)
	}
	e, _, err := q.Read()
	if err != nil || len(e.Addresses) != 2 || e.Addresses[0] != 6 || e.Addresses[1] != 7 {
		t.Errorf("%+v, %v; want addresses 6 and 7", e, err)
	}
	if text, err := other.Lookup(7); text != b.Name(8) || err != nil {
		t.Errorf("address 7 is %q, %v; want %q", text, err, b.Name(8))
	}
	if err := other.Remove(7); err != nil { // which it has never used
		t.Error(err)
	}
	if _, err := one.Lookup(7); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("an address that was removed: %v", err)
	}
	if err := errors.Join(one.Close(), one.Close()); err != nil {
		t.Error(err)
	}
	if _, err := one.Insert(ctx(t), b.Name(9)); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("inserted into a closed vector: %v", err)
	}
	for want, bad := range map[string]fi.AVAttr{"without a name": {ReadOnly: true}, "letters, digits": {Name: "a/b"}} {
		if _, err := a.NewAddressVector(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", bad, err, want)
		}
	}
	if _, err := a.NewAddressVector(attr, attr); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("two attributes: %v", err)
	}
}
