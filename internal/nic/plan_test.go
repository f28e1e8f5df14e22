// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/xsk"
)

// good returns a machine and an interface that can be used.
func good() (System, Interface) {
	return System{Kernel: "6.18.0", Capabilities: capabilitiesOf(math.MaxUint64), Memlock: math.MaxUint64},
		Interface{Name: "x", Driver: "veth", Ethernet: true, Up: true, MTU: 1500, RXQueues: 2, TXQueues: 2, FeaturesKnown: true,
			features: XDPBasic | XDPRedirect | XDPNdoXmit}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(i *Interface)
		w         Want
		xdp, copy string
	}{
		{"veth", func(*Interface) {}, Want{}, "native", "copy"},
		{"zero-copy", func(i *Interface) { i.features |= XDPZeroCopy }, Want{}, "native", "zero-copy"},
		{"zero-copy not wanted", func(i *Interface) { i.features |= XDPZeroCopy }, Want{Copy: xsk.Copy}, "native", "copy"},
		{"zero-copy that would cut", func(i *Interface) { i.features |= XDPZeroCopy; i.Driver, i.MTU = "igb", 3600 }, Want{}, "native", "copy"},
		{"no native", func(i *Interface) { i.features = 0 }, Want{XDP: bpf.Any}, "generic", "copy"},
		{"no redirect", func(i *Interface) { i.features = XDPBasic }, Want{XDP: bpf.Any}, "generic", "copy"},
		{"generic forced", func(i *Interface) { i.features |= XDPZeroCopy }, Want{XDP: bpf.Generic}, "generic", "copy"},
		{"native forced", func(*Interface) {}, Want{XDP: bpf.Native}, "native", "copy"},
		{"bond", bond, Want{}, "generic", "copy"},
		{"team", func(i *Interface) { i.Kind, i.features = "team", 0 }, Want{}, "generic", "copy"},
		{"netvsc", func(i *Interface) { i.Driver, i.Below = netvsc, []Below{{Name: "eth1", Driver: "mana"}} }, Want{}, "generic", "copy"},
		{"netvsc alone", func(i *Interface) { i.Driver = netvsc }, Want{}, "native", "copy"},
		{"old kernel", func(i *Interface) { i.FeaturesKnown = false }, Want{}, "unknown", "unknown"},
	} {
		s, i := good()
		c.change(&i)
		if p := s.Plan(&i, c.w); p.XDP != c.xdp || p.Copy != c.copy || !p.Usable || p.Err() != nil {
			t.Errorf("%s: %+v, want %s, %s", c.name, p, c.xdp, c.copy)
		}
	}
}

// A driver that takes a program but cannot redirect is never given one, whether it tells
// its features or the table knows it. Before 6.3 a driver that has native XDP is not
// asked whether it has, and one of which nothing is known is.
func TestWhereTheProgramGoes(t *testing.T) {
	unknown := func(driver string) func(i *Interface) {
		return func(i *Interface) { i.FeaturesKnown, i.features, i.Driver = false, 0, driver }
	}
	for _, driver := range []string{"ixgbevf", "thunder-nicvf", "nfp", "fbnic"} {
		for what, change := range map[string]func(i *Interface){
			"tells": func(i *Interface) { i.Driver, i.features = driver, XDPBasic }, "before 6.3": unknown(driver),
		} {
			s, i := good()
			change(&i)
			if p := s.Plan(&i, Want{XDP: bpf.Any}); p.Attach != bpf.Generic || p.Mode != xsk.Copy || p.XDP != "generic" || !p.Usable {
				t.Errorf("%s, %s: %+v, want generic XDP", driver, what, p)
			}
			for _, x := range []bpf.Mode{bpf.Auto, bpf.Native} {
				if p := s.Plan(&i, Want{XDP: x}); !errors.Is(p.Err(), bpf.ErrNoNative) {
					t.Errorf("%s, %s, %v: %v, want a refusal", driver, what, x, p.Err())
				}
			}
		}
	}
	for driver, want := range map[string]bpf.Mode{"unheard-of": bpf.Any, "bnxt_en": bpf.Native, "e1000e": bpf.Generic} {
		s, i := good()
		unknown(driver)(&i)
		if p := s.Plan(&i, Want{XDP: bpf.Any}); p.Attach != want {
			t.Errorf("%s before 6.3: %v, want %v", driver, p.Attach, want)
		}
	}
}

// refusals are changes to a good machine and interface, with the error that each causes.
var refusals = []struct {
	name   string
	change func(s *System, i *Interface)
	w      Want
	is     error // nil: no sentinel
	say    string
}{
	{"old kernel", func(s *System, _ *Interface) { s.Kernel = "5.9.16" }, Want{}, xsk.ErrUnsupported, "kernel is too old: Linux 5.9.16, want 5.10 or newer"},
	{"loopback", func(_ *System, i *Interface) { i.Ethernet = false }, Want{}, nil, "x is not an Ethernet interface"},
	{"down", func(_ *System, i *Interface) { i.Up = false }, Want{}, xsk.ErrInterfaceDown, "ip link set dev x up"},
	{"large MTU", func(_ *System, i *Interface) { i.MTU = 9000 }, Want{}, ErrMTU, "MTU 9000 is too large, a packet has to fit into one buffer, as the driver receives none in several: ip link set dev x mtu 3498"},
	{"large MTU and old kernel", func(_ *System, i *Interface) { i.MTU, i.features = 9000, i.features|XDPRXSG }, Want{}, ErrMTU, "has to fit into one buffer before Linux 6.6: ip link set dev x mtu 3498"},
	{"small MTU", func(_ *System, i *Interface) { i.MTU = 100 }, Want{}, ErrMTU, "MTU 100 is too small, want at least 256"},
	{"MTU that would be cut", func(_ *System, i *Interface) { i.Driver, i.MTU = "igb", 3600 }, Want{Copy: xsk.ZeroCopy}, ErrMTU, "or do without zero-copy"},
	{"unequal queues", func(_ *System, i *Interface) { i.TXQueues = 1 }, Want{}, nil, "ethtool -L x rx 1 tx 1"},
	{"queues that are not there", func(*System, *Interface) {}, Want{Queues: 3}, xsk.ErrNoQueue, "x has 2 queues, 3 were asked for"},
	{"too many queues", func(_ *System, i *Interface) { i.RXQueues, i.TXQueues = 65, 65 }, Want{Queues: 65}, xsk.ErrNoQueue, "x has 65 queues, at most 64 can be used"},
	{"busy polling", func(*System, *Interface) {}, Want{BusyPoll: true}, nil, "busy polling makes veth ten times slower"},
	{"busy polling of generic XDP", func(_ *System, i *Interface) { i.Driver = "ice" }, Want{BusyPoll: true, XDP: bpf.Generic}, nil, "want native XDP, or none"},
	{"no native XDP", func(_ *System, i *Interface) { i.features = 0 }, Want{}, bpf.ErrNoNative, "--xdp generic"},
	{"no redirect", func(_ *System, i *Interface) { i.features = XDPBasic }, Want{}, bpf.ErrNoNative, "cannot redirect frames to sockets"},
	{"no redirect, before 6.3", func(_ *System, i *Interface) { i.FeaturesKnown, i.Driver = false, "ixgbevf" }, Want{}, bpf.ErrNoNative, "cannot redirect"},
	{"native XDP on a bond", func(_ *System, i *Interface) { bond(i) }, Want{XDP: bpf.Native}, bpf.ErrNoNative, "its sockets receive nothing; native XDP can be had below, but follows no fail-over: --interface eth2 (of eth1, eth2)"},
	{"zero-copy on a bond", func(_ *System, i *Interface) { bond(i) }, Want{Copy: xsk.ZeroCopy}, nil, "generic XDP, which copies"},
	{"LRO hides native XDP", lro, Want{}, unix.EOPNOTSUPP, "no native XDP while lro is on: `ethtool -K x lro off`"},
	{"LRO, and any mode", lro, Want{XDP: bpf.Any}, unix.EOPNOTSUPP, "lro off"},
	{"taken by another", func(_ *System, i *Interface) { hold(i, "xdpfab_steer") }, Want{}, bpf.ErrBusy, "another xdpfab, and one at a time can have it"},
	{"foreign program", func(_ *System, i *Interface) { hold(i, "foreign") }, Want{}, unix.EBUSY, `program 7 "foreign"`},
}

// lro makes an interface one of mlx5 with LRO on, which hides native XDP.
func lro(_ *System, i *Interface) {
	i.Driver, i.features, i.offloads = "mlx5_core", 0, map[string]bool{"rx-lro": true}
}

// bond makes an interface one of two others.
func bond(i *Interface) {
	i.Kind, i.Driver = "bond", "bonding"
	i.Below = []Below{{Name: "eth1", Driver: "ice"}, {Name: "eth2", Driver: "ice", Active: true}}
}

func hold(i *Interface, program string) {
	i.Attached = &Attached{Mode: "native", ID: 7, Name: program,
		holder: &bpf.BusyError{Interface: i.Name, Mode: bpf.Native, ProgramID: 7, Name: program}}
}

// A problem is reported to a caller that only asks, and refuses one that opens the
// interface.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		s, i := good()
		c.change(&s, &i)
		p := s.Plan(&i, c.w)
		err := p.Err()
		if err == nil || !strings.Contains(err.Error(), c.say) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: opening fails with %v; want %v, %q", c.name, err, c.is, c.say)
		}
		if p.Usable || len(p.Problems) != 1 || !strings.Contains(p.Problems[0], c.say) {
			t.Errorf("%s: usable %v, problems %q; want one, %q", c.name, p.Usable, p.Problems, c.say)
		}
	}
	s, i := good()
	i.Up, i.MTU = false, 9000
	p := s.Plan(&i, Want{})
	if err := p.Err(); !errors.Is(err, xsk.ErrInterfaceDown) || !errors.Is(err, ErrMTU) || len(p.Problems) != 2 {
		t.Errorf("of two problems %v, %q are told", err, p.Problems)
	}
}

// Of many queues few are used unless more are asked for, and those to lend come behind
// them. What becomes of the others is said.
func TestDefaultQueues(t *testing.T) {
	for _, c := range []struct{ there, lend, queues, bound int }{
		{1, 0, 1, 1}, {2, 1, 1, 2}, {4, 0, 4, 4}, {64, 0, 4, 4}, {64, 2, 4, 6}, {128, 0, 4, 4},
	} {
		s, i := good()
		i.RXQueues, i.TXQueues = c.there, c.there
		p := s.Plan(&i, Want{Lend: c.lend})
		if p.Queues != c.queues || p.Bound != c.bound || !p.Usable {
			t.Errorf("of %d queues, %d to lend, %d are used and %d bound: want %d and %d", c.there, c.lend, p.Queues,
				p.Bound, c.queues, c.bound)
		}
		if told := strings.Contains(strings.Join(p.Notes, " "), "passed on with a copy"); told != (c.there > c.bound) {
			t.Errorf("of %d queues %d are bound: notes %q", c.there, c.bound, p.Notes)
		}
	}
}

// What can be opened can be opened again: in generic mode with any MTU, whatever the
// driver is.
func TestReopens(t *testing.T) {
	s, i := good() // whose driver receives no packets in several buffers
	i.MTU = 9000
	p := s.Plan(&i, Want{XDP: bpf.Generic})
	if err := errors.Join(p.Err(), p.Reopens(i.Name, i.MTU, true, false)); err != nil {
		t.Error(err)
	}
	if err := p.Reopens(i.Name, MaxMTU+1, true, false); !errors.Is(err, ErrMTU) {
		t.Errorf("a larger MTU than any: %v", err)
	}
	if err := p.Reopens("y", 1500, false, false); !errors.Is(err, xsk.ErrInterfaceDown) || !strings.HasPrefix(err.Error(), "y") {
		t.Errorf("when it is down, by another name: %v", err)
	}
	i.MTU = 1500
	if p = s.Plan(&i, Want{}); !errors.Is(p.Reopens(i.Name, 9000, true, false), ErrMTU) {
		t.Error("a larger MTU than the driver's in native mode")
	}
	several := i
	several.Driver, several.features, several.several = "veth", several.features|XDPRXSG, true
	for mtu, may := range map[int]bool{1500: true, 1400: true, 9000: false} {
		p = s.Plan(&several, Want{})
		if p.Reopens("x", mtu, true, false) != nil || (p.Reopens("x", mtu, true, true) == nil) != may {
			t.Errorf("MTU %d: with maps: %v; without: %v", mtu, p.Reopens("x", mtu, true, true),
				p.Reopens("x", mtu, true, false))
		}
	}
	i.Driver, i.features = "igb", i.features|XDPZeroCopy
	for _, c := range []struct {
		wanted xsk.Mode
		may    bool
	}{{xsk.Auto, true}, {xsk.Copy, true}, {xsk.ZeroCopy, false}} { // which would cut packets off
		if p = s.Plan(&i, Want{Copy: c.wanted}); (p.Reopens(i.Name, 3060, true, false) == nil) != c.may {
			t.Errorf("%v at an MTU of 3060: %v", c.wanted, p.Reopens(i.Name, 3060, true, false))
		}
	}
}

// A program in the NIC's own hardware leaves room for one in the driver.
func TestOffloadedProgramIsNotInTheWay(t *testing.T) {
	s, i := good()
	i.Attached = &Attached{Mode: "offloaded", ID: 7}
	if p := s.Plan(&i, Want{}); !p.Usable || p.Err() != nil {
		t.Errorf("%+v", p)
	}
}

// The interface is usable, but not by this caller: a note for a caller that asks, a
// refusal for one that opens it.
func TestPrivileges(t *testing.T) {
	const most = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_SYS_ADMIN
	pinned := uint64(2 * DefaultChunks * 2048)
	for _, c := range []struct {
		name    string
		kernel  string
		have    uint64
		memlock uint64
		say     []string // nil: nothing is missing
	}{
		{"all", "6.18.0", math.MaxUint64, 0, nil},
		{"CAP_SYS_ADMIN for CAP_BPF", "6.18.0", most, pinned, nil},
		{"too little memory", "5.11.0", most, pinned - 1, []string{"missing CAP_IPC_LOCK (to pin 16384 KiB", "ulimit -l 16384"}},
		{"with that of BPF", "5.10.0", most, pinned - 1, []string{"missing CAP_IPC_LOCK (to pin 16384 KiB", "ulimit -l unlimited"}},
		{"none", "6.18.0", 0, math.MaxUint64, []string{"missing CAP_NET_ADMIN, CAP_NET_RAW", "CAP_BPF", "CAP_PERFMON",
			"setcap cap_net_admin,cap_net_raw,cap_bpf,cap_perfmon+ep"}},
		{"one", "6.18.0", most &^ (1 << unix.CAP_NET_RAW), 0, []string{"missing CAP_NET_RAW, CAP_IPC_LOCK",
			"setcap cap_net_admin,cap_net_raw,cap_bpf,cap_perfmon,cap_ipc_lock+ep"}},
	} {
		s, i := good()
		s.Kernel, s.Capabilities, s.Memlock = c.kernel, capabilitiesOf(c.have), c.memlock
		p := s.Plan(&i, Want{})
		err := p.Err()
		if !p.Usable || len(p.Problems) != 0 || p.Pinned != pinned || (err != nil) != (c.say != nil) || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %+v, %v", c.name, p, err)
			continue
		}
		for _, word := range c.say {
			if !strings.Contains(err.Error(), word) || !strings.Contains(strings.Join(p.Notes, " "), word) {
				t.Errorf("%s: %v, notes %q; want %q in both", c.name, err, p.Notes, word)
			}
		}
	}
}
