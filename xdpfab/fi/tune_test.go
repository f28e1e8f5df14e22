// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A guest gives up after its own time, long before its host would.
func TestGuestGivesUp(t *testing.T) {
	const host, own = 4 * time.Hour, 20 * time.Second
	clock, attr := fi.NewClock(fi.DomainAttr{GiveUp: host})
	cable, server, err := xdpfab.Pipe(attr, fi.DomainAttr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.CloseAll() })
	guest := guestOn(t, cable, fi.DomainAttr{GiveUp: own})
	ep, err := server.NewEndpoint(fi.EndpointAttr{})
	if _, e := server.NewRegion("r", 64); errors.Join(err, e, ep.Enable()) != nil {
		t.Fatal(err, e)
	}
	p, err := guest.Dial(ctx(t), server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = cable.SetFaults(fi.Faults{Loss: 1})
	start := clock.Ahead()
	err = afterSilence(t, clock, &fixture{client: guest}, func() error {
		_, err := w.Add(ctx(t), 1)
		return err
	})
	if past := clock.Ahead() - start; !errors.Is(err, fi.ErrPeerSilent) || past < own/2 || past > host/2 {
		t.Errorf("given up after %v (%v), want %v", past, err, own)
	}
}

// What cannot be a guest's own is refused if it differs from the host's.
func TestGuestTunes(t *testing.T) {
	cable, server, err := xdpfab.Pipe(fi.DomainAttr{Window: 32, BaseRTT: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(cable.CloseAll(), server.CloseAll()) })
	for what, a := range map[string]fi.DomainAttr{
		"window": {Window: 16}, "floor": {RTOMin: time.Second}, "round trip": {BaseRTT: time.Second}, "retirement": {IdleRetire: time.Hour},
	} {
		if err := TryGuestOf(t, cable, a); !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("%s: %v, want ErrNotImplemented", what, err)
		}
	}
	got := GuestOf(t, cable, fi.DomainAttr{Window: 32}).Attr()
	if got.Window != 32 || got.BaseRTT != time.Millisecond || got.GiveUp != cable.Attr().GiveUp || got.IdleRetire != cable.Attr().IdleRetire {
		t.Errorf("in force: %+v", got)
	}
}
