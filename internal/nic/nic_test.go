// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestLoopback(t *testing.T) {
	i, err := Inspect("lo")
	if err != nil {
		t.Fatal(err)
	}
	if i.Ethernet || i.Name != "lo" || i.Index == 0 {
		t.Errorf("%+v", i)
	}
	if p := i.Plan(); p.Usable || !strings.Contains(strings.Join(p.Problems, " "), "not an Ethernet interface") {
		t.Errorf("loopback: %+v", p)
	}
	all, err := List()
	if err != nil || !slices.ContainsFunc(all, func(i Interface) bool { return i.Name == "lo" }) {
		t.Errorf("%d interfaces without lo, %v", len(all), err)
	}
}

func TestNoInterface(t *testing.T) {
	if _, err := Inspect("absent0"); !errors.Is(err, ErrNoInterface) || !strings.Contains(err.Error(), `"absent0"`) {
		t.Error(err)
	}
}

func TestMachine(t *testing.T) {
	s, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	if s.Kernel == "" || len(s.Features) != len(features) || len(s.Capabilities) != len(capabilities) {
		t.Errorf("%+v", s)
	}
}

func TestPlan(t *testing.T) {
	good := Interface{Name: "x", Ethernet: true, Up: true, MTU: 1500, RXQueues: 2, TXQueues: 2, FeaturesKnown: true,
		features: XDPBasic | XDPRedirect | XDPNdoXmit}
	for _, c := range []struct {
		name      string
		change    func(i *Interface)
		xdp, copy string
		problem   string
	}{
		{"veth", func(*Interface) {}, "native", "copy", ""},
		{"zero-copy", func(i *Interface) { i.features |= XDPZeroCopy }, "native", "zero-copy", ""},
		{"no native", func(i *Interface) { i.features = 0 }, "generic", "copy", ""},
		{"old kernel", func(i *Interface) { i.FeaturesKnown = false }, "unknown", "unknown", ""},
		{"down", func(i *Interface) { i.Up = false }, "native", "copy", "ip link set dev x up"},
		{"large MTU", func(i *Interface) { i.MTU = 9000 }, "native", "copy", "MTU 9000: want 256 to 3822"},
		{"small MTU", func(i *Interface) { i.MTU = 100 }, "native", "copy", "MTU 100"},
		{"queues", func(i *Interface) { i.TXQueues = 1 }, "native", "copy", "ethtool -L x rx 1 tx 1"},
		{"taken", func(i *Interface) { i.Attached = &Attached{Mode: "native", ID: 7} }, "native", "copy", "program 7"},
	} {
		i := good
		c.change(&i)
		p := i.Plan()
		if all := strings.Join(p.Problems, "; "); p.XDP != c.xdp || p.Copy != c.copy || p.Usable != (c.problem == "") || !strings.Contains(all, c.problem) {
			t.Errorf("%s: %+v, want %s, %s, problem %q", c.name, p, c.xdp, c.copy, c.problem)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		release string
		present int // of the features
	}{
		{"4.19.0", 0}, {"5.4.0-150-generic", 1}, {"5.9.16", 2}, {"5.10.1", 3}, {"5.15", 5}, {"6.3.0", 6}, {"6.18.1", 8}, {"7.0", 8},
	} {
		v, err := parseVersion(c.release)
		n := 0
		for _, f := range featuresOf(v) {
			if f.Present {
				n++
			}
		}
		if err != nil || n != c.present {
			t.Errorf("%s: %d features, %v; want %d", c.release, n, err, c.present)
		}
	}
	if _, err := parseVersion("banana"); err == nil {
		t.Error("banana is a version")
	}
}

func TestCapabilities(t *testing.T) {
	have := func(set uint64) (names string) {
		for _, c := range capabilitiesOf(set) {
			if c.Have {
				names += " " + c.Name
			}
		}
		return names
	}
	for set, want := range map[uint64]string{
		0: "", 1 << unix.CAP_NET_RAW: " CAP_NET_RAW", 1 << unix.CAP_SYS_ADMIN: " CAP_BPF CAP_PERFMON", 1 << unix.CAP_BPF: " CAP_BPF",
	} {
		if got := have(set); got != want {
			t.Errorf("%#x: %q, want %q", set, got, want)
		}
	}
}

// What the kernel tells about a veth, before and while a program is attached.
func TestVeth(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2, MTU: 1400})
	err := p.A.Do(func() error {
		i, err := Inspect(p.A.IfName)
		if err != nil {
			return err
		}
		plan := i.Plan()
		if i.Driver != "veth" || i.Kind != "veth" || i.MTU != 1400 || i.RXQueues != 2 || i.TXQueues != 2 || i.MAC != p.A.MAC.String() ||
			!slices.Contains(i.Addresses, p.A.IP4.String()+"/24") || i.Attached != nil || !plan.Usable || plan.Queues != 2 {
			t.Errorf("%+v, %+v", i, plan)
		}
		s, err := Machine()
		if err != nil {
			return err
		}
		if v, err := parseVersion(s.Kernel); err != nil || i.FeaturesKnown != v.atLeast(version{6, 3}) {
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
		if a := i.Attached; err != nil || a == nil || a.Mode != "native" || a.ID == 0 || a.Name == "" || i.Plan().Usable {
			t.Errorf("attached: %+v, %v", i.Attached, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What ethtool's family tells of a veth: offloads by name, and that it has no
// coalescing of interrupts to set.
func TestSettings(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	err := p.A.Do(func() error {
		s := SettingsOf(p.A.IfIndex)
		if s.OffloadsErr != nil {
			return s.OffloadsErr
		}
		if _, ok := s.Offloads["rx-gro"]; !ok {
			t.Errorf("offloads without rx-gro: %v", s.Offloads)
		}
		if _, ok := s.Offloads["rx-lro"]; ok {
			t.Errorf("a veth with rx-lro: %v", s.Offloads)
		}
		if !s.Offloads["tx-scatter-gather"] {
			t.Errorf("offloads without tx-scatter-gather in force: %v", s.Offloads)
		}
		if !errors.Is(s.CoalesceErr, unix.EOPNOTSUPP) || !errors.Is(s.PauseErr, unix.EOPNOTSUPP) {
			t.Errorf("coalescing: %v, pause frames: %v", s.CoalesceErr, s.PauseErr)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := SettingsOf(1 << 30); s.OffloadsErr == nil || s.RingErr == nil {
		t.Errorf("an interface that is not there: %+v", s)
	}
}
