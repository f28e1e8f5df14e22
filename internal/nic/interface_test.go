// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xsk"
)

func TestLoopback(t *testing.T) {
	i, err := Inspect("lo")
	if err != nil {
		t.Fatal(err)
	}
	if i.Ethernet || i.Name != "lo" || i.Index == 0 {
		t.Errorf("%+v", i)
	}
	all, err := List()
	if err != nil || !slices.ContainsFunc(all, func(i Interface) bool { return i.Name == "lo" }) {
		t.Errorf("%d interfaces without lo, %v", len(all), err)
	}
}

func TestNoInterface(t *testing.T) {
	if _, err := Inspect("absent0"); !errors.Is(err, xsk.ErrNoInterface) || !strings.Contains(err.Error(), `"absent0"`) {
		t.Error(err)
	}
}

// The kernel's description of a veth, before and while a program is attached.
func TestVeth(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2, MTU: 1400})
	err := p.A.Do(func() error {
		i, err := Inspect(p.A.IfName)
		if err != nil {
			return err
		}
		s, err := Machine()
		if err != nil {
			return err
		}
		plan := s.Plan(&i, Want{})
		if i.Driver != "veth" || i.Kind != "veth" || i.MTU != 1400 || i.RXQueues != 2 || i.TXQueues != 2 || i.MAC != p.A.MAC.String() ||
			!slices.Contains(i.Addresses, p.A.IP4.String()+"/24") || i.Attached != nil || !plan.Usable || plan.Queues != 2 {
			t.Errorf("%+v, %+v", i, plan)
		}
		if _, v := testnet.Kernel(t); i.FeaturesKnown != v.AtLeast(kernel.DriverFeatures) {
			t.Errorf("Linux %s: XDP features known: %v", s.Kernel, i.FeaturesKnown)
		}
		if i.FeaturesKnown && (plan.XDP != "native" || plan.Copy != "copy") {
			t.Errorf("features %v: %+v", i.Features, plan)
		}
		prog, err := bpf.Load(bpf.Config{MAC: [6]byte(p.A.MAC)}, 2)
		if err != nil {
			return err
		}
		defer prog.Close()
		if err := prog.Attach(p.A.IfIndex, bpf.Native); err != nil {
			return err
		}
		i, err = Inspect(p.A.IfName)
		if a := i.Attached; err != nil || a == nil || a.Mode != "native" || a.ID == 0 || a.Name == "" || a.holder == nil {
			t.Errorf("attached: %+v, %v", i.Attached, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
