// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Evidence, and the first cause that follows from it.
func TestCauses(t *testing.T) {
	for name, c := range map[string]struct {
		f      Finding
		peer   string
		sure   bool
		cause  string
		remedy string
	}{
		"own":                     {Finding{Own: true, Port: PortRefused}, "10.0.0.2", true, "10.0.0.2 is an address of this node", "of the peer"},
		"nobody":                  {Finding{Nobody: errors.New("route: nobody there")}, "10.0.0.2", true, "nobody there", "check the address"},
		"raw Ethernet alone":      {Finding{Answers: "02:00:00:00:00:0b", Port: PortRefused}, "10.0.0.2", true, "answers at 02:00:00:00:00:0b, over raw", "--udp=false"},
		"another IP address":      {Finding{Answers: "02:00:00:00:00:0b", Port: PortSilent}, "10.0.0.2", true, "answers at 02:00:00:00:00:0b, over raw", "its IP address may have changed"},
		"UDP alone":               {Finding{Answers: "10.0.0.2"}, "02:00:00:00:00:0b", true, "answers at 10.0.0.2, over UDP", "use that address"},
		"no daemon":               {Finding{Port: PortRefused, Tried: []string{"02:00:00:00:00:0b"}}, "10.0.0.2/3", true, "10.0.0.2 is up, but nothing", "start xdpfabd"},
		"no daemon, or a VLAN":    {Finding{Port: PortRefused}, "10.0.0.2", true, "nothing there takes", "it may have another --vlan"},
		"another VLAN, by MAC":    {Finding{Neighbour: true}, "02:00:00:00:00:0b", false, "another interface or --vlan", "xdpfab stat"},
		"silent here":             {Finding{Port: PortSilent}, "10.0.0.2", false, "stopped", "xdpfab stat"},
		"silent behind a router":  {Finding{Port: PortSilent, Gateway: "10.0.0.1"}, "10.9.0.2", false, "a firewall on the way by 10.0.0.1", "34997"},
		"MAC of a known host":     {Finding{Neighbour: true}, "02:00:00:00:00:0b", false, "no xdpfabd runs", "xdpfab stat"},
		"MAC of a refusing host":  {Finding{Port: PortRefused}, "02:00:00:00:00:0b", false, "no xdpfabd runs", "xdpfab stat"},
		"MAC of an unknown host":  {Finding{}, "02:00:00:00:00:0b", false, "no host with 02:00:00:00:00:0b is known", "ip link"},
		"nothing is known at all": {Finding{}, "10.0.0.2", false, "stopped", ""},
	} {
		addr, err := wire.ParseAddr(c.peer)
		if err != nil {
			t.Fatal(err)
		}
		c.f.Peer = addr
		all := c.f.Causes()
		first := all[0]
		if first.Sure != c.sure || (len(all) == 1) != c.sure || !strings.Contains(first.Text, c.cause) ||
			!strings.Contains(first.String(), c.remedy) {
			t.Errorf("%s: %d causes, first %+v; want %q and %q, sure: %v", name, len(all), first, c.cause, c.remedy, c.sure)
		}
		hint := c.f.Hint("eth0")
		if !strings.Contains(hint, first.Text) || !strings.Contains(hint, "`xdpfab diagnose "+c.peer+" -i eth0`") || strings.Contains(hint, "\n") {
			t.Errorf("%s: hint %q", name, hint)
		}
		for _, one := range all {
			if one.Text == "" || one.Remedy == "" {
				t.Errorf("%s: cause %+v lacks a text or a remedy", name, one)
			}
		}
	}
}

// A host that refuses the port has the address, and serves no UDP there.
func TestWhichOf(t *testing.T) {
	peer, err := wire.ParseAddr("10.0.0.2/3")
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[Port]string{PortRefused: "of 10.0.0.2, so its UDP is off", PortSilent: "its address has probably changed",
		PortUntried: "its address has probably changed"} {
		f := Finding{Peer: peer, Port: port}
		if got := f.whichOf(); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", port, got, want)
		}
	}
}
