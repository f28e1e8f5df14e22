// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"net"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestLinkLocal(t *testing.T) {
	if got := linkLocal(wire.MAC{2, 0, 0, 0xaa, 0xbb, 0xcc}).String(); got != "fe80::ff:feaa:bbcc" {
		t.Error(got)
	}
}

// An interface that is not one of Ethernet has no way to anybody: the steps behind that
// are left out.
func TestNoWay(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	d := diagnosis{known: true, Question: Question{Interface: "lo"}, Finding: Finding{Peer: mustAddr(t, "10.0.0.2")}}
	d.nic.Index, d.nic.Up = lo.Index, true
	if s := d.lookAtRoute(t.Context()); s.Verdict != LeftOut || !strings.Contains(s.Detail, "lo has no MAC address") || d.way != nil {
		t.Errorf("route: %+v", s)
	}
	for _, s := range []Step{d.askNeighbour(t.Context()), d.knockAtPort(t.Context())} {
		if s.Verdict != LeftOut {
			t.Errorf("%+v", s)
		}
	}
}

func mustAddr(t *testing.T, text string) wire.Addr {
	t.Helper()
	a, err := wire.ParseAddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
