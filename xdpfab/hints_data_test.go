// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Data and events at targets, and the flags of operations, can be asked for, and are in
// the result.
func TestHintsOfData(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	const events = xdpfab.CapRMAEvent | xdpfab.CapSource
	const flags = xdpfab.FlagCompletion | xdpfab.FlagInject
	for name, c := range map[string]struct {
		hints xdpfab.Info
		holds func(*xdpfab.Info) bool
	}{
		"data": {xdpfab.Info{Domain: xdpfab.DomainInfo{CQDataSize: 4}}, func(i *xdpfab.Info) bool { return i.Domain.CQDataSize == 8 }},
		"events": {xdpfab.Info{Caps: xdpfab.CapAtomic | events}, func(i *xdpfab.Info) bool {
			return i.Caps&events == events && i.Receive.Caps&events == events && i.Transmit.Caps&events == 0
		}},
		"events of an initiator": {xdpfab.Info{Caps: xdpfab.CapWrite | events}, func(i *xdpfab.Info) bool {
			return i.Caps&events == events && !i.EndpointAttr().InitiateOnly
		}},
		"an initiator": {xdpfab.Info{Caps: xdpfab.CapWrite}, func(i *xdpfab.Info) bool { return i.Caps&events == 0 && i.EndpointAttr().InitiateOnly }},
		"flags": {xdpfab.Info{Transmit: xdpfab.TransmitInfo{OpFlags: flags}}, func(i *xdpfab.Info) bool {
			return i.EndpointAttr().OpFlags == flags|xdpfab.FlagDeliveryComplete
		}},
	} {
		c.hints.Domain.Instance = f.client
		list, err := xdpfab.GetInfo(ctx(t), &c.hints)
		list = ofOneType(&c.hints, list)
		if err != nil || len(list) != 1 || !c.holds(&list[0]) {
			t.Errorf("%s: %v, %v", name, err, list)
		}
	}
}

// The op_flags of an info are those of the endpoints that are made by it.
func TestInfoOpFlags(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	list, err := xdpfab.GetInfo(ctx(t), &xdpfab.Info{
		Transmit: xdpfab.TransmitInfo{OpFlags: xdpfab.FlagCompletion}, Domain: xdpfab.DomainInfo{Instance: f.client}})
	if err != nil {
		t.Fatal(err)
	}
	attr := list[0].EndpointAttr()
	attr.Number = xdpfab.AnyNumber
	ep, cq, _ := selective(t, f, attr)
	m := xdpfab.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: 1, Datatype: xdpfab.Uint64, Op: xdpfab.Sum}
	if err := ep.Atomic(&m, xdpfab.FlagDefaults); err != nil {
		t.Fatal(err)
	}
	if c := next(t, cq); c.Err != nil { // without FlagCompletion there is none
		t.Error(c.Err)
	}
	if got := ep.Info(); got.Transmit.OpFlags != list[0].Transmit.OpFlags {
		t.Errorf("in force: %v, want %v", got.Transmit.OpFlags, list[0].Transmit.OpFlags)
	}
}
