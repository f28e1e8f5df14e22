// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A probe tells what a domain gets, and leaves an interface alone that a domain has.
func TestVethProbe(t *testing.T) {
	pair := testnet.NewPair(t, testnet.Options{})
	err := pair.A.Do(func() error {
		p, err := xdpfab.ProbeInterface(ctx(t), pair.A.IfName)
		if err != nil {
			return err
		}
		granted := testnet.Granted(t)
		d, err := xdpfab.Open(ctx(t), pair.A.IfName, xdpfab.DomainAttr{Attach: xdpfab.AttachNever, Generic: granted.XDP == "generic"})
		if err != nil {
			return err
		}
		if p.InterfaceInfo != d.Interface() || p.XDP != granted.XDP || p.Copy != granted.Copy || p.OpeningSeconds <= 0 {
			t.Errorf("the probe found %+v, opening gives %+v, want %s XDP, %s", p, d.Interface(), granted.XDP, granted.Copy)
		}
		if _, err := xdpfab.ProbeInterface(ctx(t), pair.A.IfName); !errors.Is(err, xdpfab.ErrBusy) {
			t.Errorf("probing an interface that a domain has: %v", err)
		}
		return d.CloseAll()
	})
	if err != nil {
		t.Fatal(err)
	}
}
