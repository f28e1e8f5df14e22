// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// What a domain with UDP has left resident goes on taking the packets of the interface's
// addresses: UDP sockets there are refused, with what ends it. Without UDP, or on another
// interface, it is in nobody's way.
func TestUDPDeaf(t *testing.T) {
	for name, c := range map[string]struct {
		udp  bool // of the domain that has left something
		open func(h *homestead) (*xdpfab.Domain, error)
		want string // of the error; empty for none
	}{
		"interface": {true, func(h *homestead) (*xdpfab.Domain, error) {
			return h.tryOpen(fi.DomainAttr{Transport: fi.TransportUDP})
		}, "takes the packets"},
		"address": {true, func(h *homestead) (d *xdpfab.Domain, err error) {
			err = h.side.Do(func() (err error) {
				d, err = xdpfab.Open(ctx(h.t), h.side.IP6.String(), fi.DomainAttr{Transport: fi.TransportUDP})
				return err
			})
			return d, err
		}, "takes the packets"},
		"auto": {true, func(h *homestead) (*xdpfab.Domain, error) {
			return h.tryOpen(fi.DomainAttr{Transport: fi.TransportAuto})
		}, "`xdpfab resident remove` ends them"},
		"loopback": {true, func(h *homestead) (d *xdpfab.Domain, err error) {
			err = h.side.Do(func() (err error) {
				d, err = xdpfab.Open(ctx(h.t), "127.0.0.1", fi.DomainAttr{Transport: fi.TransportUDP})
				return err
			})
			return d, err
		}, ""},
		"raw Ethernet": {false, func(h *homestead) (*xdpfab.Domain, error) {
			return h.tryOpen(fi.DomainAttr{Transport: fi.TransportUDP})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pair := testnet.NewVeth(t, testnet.Options{})
			h := newHomestead(t, pair.B, fi.DomainAttr{ResidentLeave: true, EthernetOnly: !c.udp})
			h.open()
			if err := h.dom.CloseAll(); err != nil {
				t.Fatal(err)
			}
			d, err := c.open(h)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want busy, and %q", err, c.want)
			}
			if err == nil {
				if beside := d.Interface().Beside; beside != "" {
					t.Errorf("a program is said to be beside: %s", beside)
				}
				if err := d.CloseAll(); err != nil {
					t.Error(err)
				}
			}
			if c.want == "" {
				return
			}
			if err := resident.RemoveFolder(h.attr.ResidentPin); err != nil {
				t.Fatal(err)
			}
			if d, err = c.open(h); err != nil {
				t.Fatal(err)
			}
			if err := d.CloseAll(); err != nil {
				t.Error(err)
			}
		})
	}
}
