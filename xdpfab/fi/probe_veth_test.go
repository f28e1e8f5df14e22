// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A probe tells what a domain gets, and leaves an interface alone that a domain has.
func TestVethProbe(t *testing.T) {
	pair := testnet.NewPair(t, testnet.Options{})
	err := pair.A.Do(func() error {
		p, err := fi.ProbeInterface(ctx(t), pair.A.IfName)
		if err != nil {
			return err
		}
		granted := testnet.Granted(t)
		d, err := xdpfab.Open(ctx(t), pair.A.IfName, fi.DomainAttr{Attach: fi.AttachNever, XDP: fi.XDPAny, EthernetOnly: true})
		if err != nil {
			return err
		}
		if p.InterfaceInfo != d.Interface() || p.XDP != granted.XDP || p.Copy != granted.Copy || p.OpeningSeconds <= 0 {
			t.Errorf("the probe found %+v, opening gives %+v, want %s XDP, %s", p, d.Interface(), granted.XDP, granted.Copy)
		}
		if _, err := fi.ProbeInterface(ctx(t), pair.A.IfName); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("probing an interface that a domain has: %v", err)
		}
		return d.CloseAll()
	})
	if err != nil {
		t.Fatal(err)
	}
}
