// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A list of peers gets numbers in its order. One that fails has its error, and keeps
// nothing from the others.
func TestPeerList(t *testing.T) {
	fi.NotOverSockets(t, "the addresses are those of a pipe")
	a, b, _ := pipeWithRegion(t, 64)
	talk, err := hostingOf(t, a, host.GuestLimits{Peers: 3})(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guestpkg.Attach(t.Context(), talk, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const origin = 77
	if _, _, err := dev.Number(share.Endpoint{Number: node.AnyNumber, Origin: origin}); err != nil {
		t.Fatal(err)
	}
	ask := func(names ...string) (all []share.PeerReply, err error) {
		t.Helper()
		list := share.PeerList{Origin: origin}
		for _, name := range names {
			addr, err := wire.ParseAddr(name)
			if err != nil {
				t.Fatal(err)
			}
			list.Addrs = append(list.Addrs, share.Addr(addr))
		}
		return all, dev.Call(t.Context(), share.CallPeers, list, &all)
	}
	all, err := ask(b.Name(0), "10.0.0.9", b.Name(5), "02:00:00:00:00:0c/7", "02:00:00:00:00:0c/8")
	if err != nil || len(all) != 5 {
		t.Fatalf("%+v, %v", all, err)
	}
	numbers, failed := []uint32{}, []string{}
	for _, r := range all {
		numbers, failed = append(numbers, r.Number), append(failed, strings.Join(r.Kinds, " "))
		if (r.Error == "") != (r.Errno == 0) || len(r.Error) > 256 {
			t.Errorf("%+v: want an error with its number, or none", r)
		}
	}
	if !reflect.DeepEqual(numbers, []uint32{1, 0, 2, 3, 0}) || !strings.Contains(failed[1], "not implemented") || !strings.Contains(failed[4], "denied") {
		t.Errorf("numbers %v, errors %q", numbers, failed)
	}
	if list := a.Hosting().Guests(); len(list) != 1 || list[0].Peers != 3 {
		t.Errorf("the host has %+v, want 3 peers", list)
	}
	if all, err := ask(); err != nil || len(all) != 0 {
		t.Errorf("no peers: %+v, %v", all, err)
	}
	// The longest list of errors fits a text.
	none := slices.Repeat([]string{"10.0.0.9"}, share.MostPeers)
	for i := range none {
		none[i] = fmt.Sprintf("fd00:1234:5678:9abc:def0:1234:5678:%x/%d", 0x8000+i, 60000+i)
	}
	if all, err := ask(none...); err != nil || len(all) != share.MostPeers || all[127].Error == "" {
		t.Errorf("%d replies, %v", len(all), err)
	}
	if _, err := ask(append(none, none[0])...); err == nil || !strings.Contains(err.Error(), "want at most 128") {
		t.Errorf("too many: %v", err)
	}
}

// A list of peers that waits for a next hop moves to the next daemon as a whole: no peer
// is made twice.
func TestVethTakeoverWithWaitingPeers(t *testing.T) {
	testnet.Require(t)
	attr := fi.DomainAttr{Attach: fi.AttachNever}
	pair := testnet.NewPair(t, testnet.Options{})
	s := &succession{t: t, side: pair.A, attr: attr}
	s.begin(openWhole(t, pair.A, attr))
	talk, err := s.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guestpkg.Attach(t.Context(), talk, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	const origin = 77
	if _, _, err := dev.Number(share.Endpoint{Number: node.AnyNumber, Origin: origin}); err != nil {
		t.Fatal(err)
	}
	var all []share.PeerReply
	answered := make(chan error, 1)
	go func() {
		list := share.PeerList{Origin: origin, Addrs: []share.Addr{
			share.Addr(wire.Addr{MAC: wire.MAC(pair.B.MAC)}),
			share.Addr(wire.Addr{IP: pair.B.IP4.Next()}), // nobody's
		}}
		answered <- dev.Call(t.Context(), share.CallPeers, list, &all)
	}()
	s.next()
	s.next()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Number == 0 || all[0].Error != "" || !slices.Contains(all[1].Kinds, "peer silent") {
		t.Errorf("%+v: want a number, and a peer that is silent", all)
	}
	if list := s.dom.Hosting().Guests(); len(list) != 1 || list[0].Peers != 1 {
		t.Errorf("the host has %+v, want one peer", list)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
