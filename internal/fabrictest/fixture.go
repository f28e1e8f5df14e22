// SPDX-License-Identifier: Apache-2.0

package fabrictest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Fixture is a client and a server with a region "r" of 64 KiB under key 1, and
// a read-only one "ro" under key 2.
type Fixture struct {
	Client, Server *xdpfab.Domain
	Region         *mr.Region
	EP             *fi.Endpoint
	CQ             *fi.CompletionQueue
	AV             *fi.AddressVector
	Dest           fi.Address
}

// SetUp makes a fixture, with an endpoint and a queue of that size.
func SetUp(t testing.TB, attr, server xdpfab.DomainAttr, size int) *Fixture {
	t.Helper()
	f := &Fixture{}
	var err error
	must := func(e error) {
		t.Helper()
		if e != nil {
			t.Fatal(e)
		}
	}
	f.Client, f.Server, err = Join(t, attr, server)
	must(err)
	t.Cleanup(func() {
		must(f.Client.CloseAll())
		must(f.Server.CloseAll())
	})
	register := func(key uint64, o mr.Options) *mr.Region {
		m, err := mr.Memfd("test", 1<<16) // which a host can map too
		must(err)
		t.Cleanup(func() { _ = m.Close() })
		o.Key = &key
		r, err := f.Server.Register(m, o)
		must(err)
		return r
	}
	f.Region = register(1, mr.Options{Name: "r", Access: mr.RemoteRead | mr.RemoteWrite})
	register(2, mr.Options{Name: "ro", Access: mr.RemoteRead})
	sep, err := f.Server.NewEndpoint(fi.EndpointAttr{})
	must(err)
	must(sep.Enable())
	f.AV, err = f.Client.NewAddressVector()
	must(err)
	f.CQ, err = f.Client.NewCompletionQueue(fi.CQAttr{Size: size})
	must(err)
	f.EP, err = f.Client.NewEndpoint(fi.EndpointAttr{Number: 9, Size: size})
	must(err)
	must(errors.Join(f.EP.Bind(f.AV, 0), f.EP.Bind(f.CQ, 0), f.EP.Enable()))
	f.Dest, err = f.AV.Insert(Context(t), f.Server.Name(0))
	must(err)
	return f
}

// Context ends with the patience of a test.
func Context(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), testnet.Patience)
	t.Cleanup(cancel)
	return c
}

// Reduced returns how much a test does: with -short, for the race detector and virtual
// machines, which slow it down tenfold, less.
func Reduced(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// Modes runs a test with each way to make progress, and as a guest.
func Modes(t *testing.T, f func(t *testing.T, a xdpfab.DomainAttr)) {
	DirectModes(t, f)
	t.Run("guest", func(t *testing.T) { f(t, xdpfab.DomainAttr{Attach: fi.AttachAlways}) })
	t.Run("manual guest", func(t *testing.T) {
		f(t, xdpfab.DomainAttr{Attach: fi.AttachAlways, Progress: fi.ProgressManual})
	})
}

// DirectModes is Modes for what a guest cannot do.
func DirectModes(t *testing.T, f func(t *testing.T, a xdpfab.DomainAttr)) {
	t.Run("auto", func(t *testing.T) { f(t, xdpfab.DomainAttr{}) })
	t.Run("manual", func(t *testing.T) { f(t, xdpfab.DomainAttr{Progress: fi.ProgressManual}) })
}

// Join is xdpfab.Pipe, of which an end is a guest of the one with the cable if its
// attributes say AttachAlways.
func Join(t testing.TB, attr ...xdpfab.DomainAttr) (a, b *xdpfab.Domain, err error) {
	t.Helper()
	testnet.SkipOnNICs(t, "a Pipe")
	if len(attr) == 0 {
		attr = make([]xdpfab.DomainAttr, 1)
	}
	if len(attr) == 1 {
		attr = append(attr, attr[0])
		attr[1].Attach = fi.AttachAuto
	}
	ends := [2]xdpfab.DomainAttr{attr[0], attr[1]}
	for i := range ends {
		if ends[i].Attach == fi.AttachAlways {
			ends[i].Attach, ends[i].Progress = fi.AttachNever, fi.ProgressAuto // a daemon's
		}
	}
	a, b, err = xdpfab.Pipe(ends[:]...)
	if err != nil {
		return nil, nil, err
	}
	for i, d := range []**xdpfab.Domain{&a, &b} {
		if attr[i].Attach == fi.AttachAlways {
			*d = GuestOn(t, *d, attr[i])
		}
	}
	return a, b, nil
}

// GuestOn returns a guest of a domain, which ends after it.
func GuestOn(t testing.TB, cable *xdpfab.Domain, attr xdpfab.DomainAttr) *xdpfab.Domain {
	t.Cleanup(func() {
		if err := cable.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	guest := Guest(t, cable, attr)
	hosts.Store(guest, cable)
	t.Cleanup(func() { hosts.Delete(guest) })
	return guest
}

// hosts has the domain with the cable of each guest that join has made.
var hosts sync.Map

// CableOf returns the domain that has the cable of d: its host, or d itself.
func CableOf(d *xdpfab.Domain) *xdpfab.Domain {
	if host, is := hosts.Load(d); is {
		return host.(*xdpfab.Domain)
	}
	return d
}
