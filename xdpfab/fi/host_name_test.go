// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Hints may name hosts: the infos have their addresses, and interfaces that can reach
// them. localhost stands for any: its address is known everywhere.
func TestHostNames(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	for dest, want := range map[string]string{"localhost": "127.0.0.1", "localhost/3": "127.0.0.1/3"} {
		list, err := discover(t, pair.A, &fi.Info{Dest: dest, AddrFormat: fi.AddrIPv4})
		if err != nil || len(list) == 0 || list[0].Dest != want || list[0].AddrFormat != fi.AddrIPv4 {
			t.Errorf("%s: %v, %v: want %s", dest, list, err, want)
		}
	}
	if _, err := discover(t, pair.A, &fi.Info{Source: "localhost", AddrFormat: fi.AddrIPv4}); !errors.Is(err, fi.ErrNoInfo) || !strings.Contains(err.Error(), "src_addr 127.0.0.1: want "+pair.A.IP4.String()) {
		t.Errorf("%v, want that no interface has the address", err)
	}
	for _, wrong := range []string{"localhost/x", "ff:ff:ff:ff:ff:ff", "224.0.0.1", "/3"} {
		if _, err := discover(t, pair.A, &fi.Info{Dest: wrong}); err == nil || strings.Contains(err.Error(), "host:") {
			t.Errorf("%s: %v, want that it is no address", wrong, err)
		}
	}
	late, cancel := context.WithCancel(ctx(t))
	cancel()
	if _, err := fi.GetInfo(late, &fi.Info{Dest: "localhost"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Dial and Insert take the name of a host; what the resolver says of one that it does not
// know is in the error, and an attempt at an IP address is no name.
func TestDialNames(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	d := openOn(t, pair.A, fi.DomainAttr{Transport: fi.TransportUDP})
	served(t, openAt(t, pair.A, "127.0.0.1", fi.DomainAttr{Transport: fi.TransportUDP}))
	lo := openAt(t, pair.A, "127.0.0.2", fi.DomainAttr{Transport: fi.TransportUDP})
	p, err := lo.Dial(ctx(t), "localhost")
	if err != nil || p.Addr() != "localhost" {
		t.Errorf("%v", err)
	}
	for name, want := range map[string]string{"absent.invalid": "lookup absent.invalid", "10.0.0": "neither a MAC address", "::x": "neither a MAC address"} {
		if _, err := d.Dial(ctx(t), name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(want, "neither") && strings.Contains(err.Error(), "lookup") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	late, cancel := context.WithCancel(ctx(t))
	cancel()
	if _, err := d.Dial(late, "localhost"); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
