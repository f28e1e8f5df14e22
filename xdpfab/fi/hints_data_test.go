// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Data and events at targets, and the flags of operations, can be asked for, and are in
// the result.
func TestHintsOfData(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	const events = fi.CapRMAEvent | fi.CapSource
	const flags = fi.FlagCompletion | fi.FlagInject
	for name, c := range map[string]struct {
		hints fi.Info
		holds func(*fi.Info) bool
	}{
		"data": {fi.Info{Domain: fi.DomainInfo{CQDataSize: 4}}, func(i *fi.Info) bool { return i.Domain.CQDataSize == 8 }},
		"events": {fi.Info{Caps: fi.CapAtomic | events}, func(i *fi.Info) bool {
			return i.Caps&events == events && i.Receive.Caps&events == events && i.Transmit.Caps&events == 0
		}},
		"events of an initiator": {fi.Info{Caps: fi.CapWrite | events}, func(i *fi.Info) bool {
			return i.Caps&events == events && !i.EndpointAttr().InitiateOnly
		}},
		"an initiator": {fi.Info{Caps: fi.CapWrite}, func(i *fi.Info) bool { return i.Caps&events == 0 && i.EndpointAttr().InitiateOnly }},
		"flags": {fi.Info{Transmit: fi.TransmitInfo{OpFlags: flags}}, func(i *fi.Info) bool {
			return i.EndpointAttr().OpFlags == flags|fi.FlagDeliveryComplete
		}},
	} {
		c.hints.Domain.Instance = f.client.Domain
		list, err := fi.GetInfo(ctx(t), &c.hints)
		list = ofOneType(&c.hints, list)
		if err != nil || len(list) != 1 || !c.holds(&list[0]) {
			t.Errorf("%s: %v, %v", name, err, list)
		}
	}
}

// The op_flags of an info are those of the endpoints that are made by it.
func TestInfoOpFlags(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	list, err := fi.GetInfo(ctx(t), &fi.Info{
		Transmit: fi.TransmitInfo{OpFlags: fi.FlagCompletion}, Domain: fi.DomainInfo{Instance: f.client.Domain}})
	if err != nil {
		t.Fatal(err)
	}
	attr := list[0].EndpointAttr()
	attr.Number = fi.AnyNumber
	ep, cq, _ := selective(t, f, attr)
	m := fi.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	if err := ep.Atomic(&m, fi.FlagDefaults); err != nil {
		t.Fatal(err)
	}
	if c := next(t, cq); c.Err != nil { // without FlagCompletion there is none
		t.Error(c.Err)
	}
	if got := ep.Info(); got.Transmit.OpFlags != list[0].Transmit.OpFlags {
		t.Errorf("in force: %v, want %v", got.Transmit.OpFlags, list[0].Transmit.OpFlags)
	}
}
