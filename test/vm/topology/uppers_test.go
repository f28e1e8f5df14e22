// SPDX-License-Identifier: Apache-2.0

//go:build linux

package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// upper is a way in which an interface is set up on real machines: as another one's part.
type upper struct {
	name string
	// setup are commands of ip(8), or steps with teamOption, in the server's namespace,
	// where veth0 is the cable and spare0 another one; MAC, IP4 and IP6 stand for the
	// side's.
	setup []string
	open  string // the interface to open
	attr  xdpfab.DomainAttr
	xdp   string // that it gets
	above string // as InterfaceInfo has it
	byMAC bool   // peers reach it by its MAC address
	byIP  bool
}

const few = 20 // additions by each address of each kind

// moved moves the addresses of the cable to another interface.
func moved(to string) []string {
	return []string{"link set " + to + " up", "addr flush dev veth0", "addr add IP4/24 dev " + to,
		"addr add IP6/64 dev " + to + " nodad"}
}

// bonded makes a bond of the cable and of another one.
func bonded(mode string) []string {
	return append([]string{"link add bond0 address MAC type bond miimon 20 mode " + mode, "link set veth0 down",
		"link set spare0 down", "link set veth0 master bond0", "link set spare0 master bond0", "link set veth0 up"},
		moved("bond0")...)
}

func bridged() []string {
	return append([]string{"link add br0 address MAC type bridge", "link set veth0 master br0"}, moved("br0")...)
}

var uppers = []upper{
	{"active-backup bond", bonded("active-backup"), "bond0", xdpfab.DomainAttr{}, "generic", "", true, true},
	{"balance-xor bond", bonded("balance-xor"), "bond0", xdpfab.DomainAttr{}, "generic", "", true, true},
	{"802.3ad bond", bonded("802.3ad"), "bond0", xdpfab.DomainAttr{}, "generic", "", true, true},
	{"active-backup team", teamed(), "team0", xdpfab.DomainAttr{}, "generic", "", true, true},
	{"port of a team", teamed(), "veth0", xdpfab.DomainAttr{}, "native", "team0 (team)", true, true},
	{"slave of a bond", bonded("active-backup"), "veth0", xdpfab.DomainAttr{}, "native", "bond0 (bond)", true, true},
	{"bridge", bridged(), "br0", xdpfab.DomainAttr{XDP: fi.XDPGeneric}, "generic", "", true, true},
	{"port of a bridge", bridged(), "veth0", xdpfab.DomainAttr{}, "native", "br0 (bridge)", true, true},
	// Whoever moves an interface into a VRF takes its IPv6 addresses away.
	{"port in a VRF", []string{"link add blue type vrf table 10", "link set blue up", "link set veth0 master blue",
		"addr replace IP6/64 dev veth0 nodad"},
		"veth0", xdpfab.DomainAttr{}, "native", "blue (vrf)", true, true},
	{"macvlan", append([]string{"link add mac0 link veth0 type macvlan mode bridge"}, moved("mac0")...),
		"mac0", xdpfab.DomainAttr{XDP: fi.XDPGeneric}, "generic", "", true, true},
	{"ipvlan", append([]string{"link add ipv0 link veth0 type ipvlan mode l2"}, moved("ipv0")...),
		"ipv0", xdpfab.DomainAttr{XDP: fi.XDPGeneric}, "generic", "", false, true},
	{"bridge above a bond", append(append(bonded("active-backup"), "link add br0 address MAC type bridge",
		"link set bond0 master br0", "addr flush dev bond0"), moved("br0")...),
		"bond0", xdpfab.DomainAttr{}, "generic", "br0 (bridge)", true, true},
}

// build sets a side up; it skips the test if the kernel has no such kind of interface.
func (u *upper) build(t *testing.T, side *testnet.Side) {
	t.Helper()
	for _, c := range u.setup {
		c = strings.NewReplacer("MAC", side.MAC.String(), "IP4", side.IP4.String(), "IP6", side.IP6.String()).Replace(c)
		if kind := kindOf(c); kind != "" && !has(t, side, kind) {
			testnet.SkipUnlessVM(t, fmt.Errorf("this kernel has no %s", kind))
		}
		if strings.HasPrefix(c, teamOption) {
			setTeam(t, side, c)
			continue
		}
		testnet.IP(t, side, c)
	}
	// Otherwise the kernel answers for the addresses of a macvlan at the interface
	// below.
	err := side.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/conf/veth0/arp_ignore", []byte("1"), 0)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kindOf is the kind of link that a command makes; empty for none.
func kindOf(command string) string {
	words := strings.Fields(command)
	if n := slices.Index(words, "type"); n >= 0 && words[1] == "add" {
		return words[n+1]
	}
	return ""
}

// has reports whether the kernel has a kind of link.
func has(t *testing.T, side *testnet.Side, kind string) bool {
	t.Helper()
	try := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: "tried0"}, LinkType: kind}
	if kind == "macvlan" || kind == "ipvlan" {
		try.ParentIndex = side.IfIndex
	}
	err := side.Do(func() error { return netlink.LinkAdd(try) })
	if err == nil {
		testnet.IP(t, side, "link del tried0")
	}
	return !errors.Is(err, unix.EOPNOTSUPP)
}

// Each way in which machines are set up works, by itself or with the option that its
// refusal names, and the interface tells what it belongs to.
func TestUppers(t *testing.T) {
	for _, u := range uppers {
		t.Run(u.name, func(t *testing.T) {
			p := testnet.NewVeth(t, testnet.Options{})
			testnet.IP(t, p.B, "link add spare0 type veth peer name spare1")
			u.build(t, p.B)
			u.check(t, p)
		})
	}
}

// check serves counters on the interface, and has the other side use them by each
// address.
func (u *upper) check(t *testing.T, p *testnet.Pair) {
	t.Helper()
	server := *p.B
	server.IfName = u.open
	in := serve(t, &server, u.attr).Interface()
	if in.XDP != u.xdp || in.Above != u.above {
		t.Errorf("%s XDP, above %q; want %s, %q", in.XDP, in.Above, u.xdp, u.above)
	}
	addrs := []string{p.B.IP4.String(), p.B.IP6.String()}
	for _, a := range addrs {
		if !strings.Contains(in.Served, a+"/") {
			t.Errorf("served: %q, want %v", in.Served, a)
		}
	}
	if u.byMAC {
		addrs = append(addrs, in.MAC)
	}
	client := open(t, p.A, xdpfab.DomainAttr{})
	for n, a := range addrs {
		count(t, word(t, client, a, 0), uint64(n)*few, few)
	}
}

// A bond that native XDP is forced on is refused, and the refusal names its active port.
func TestBondRefusesNative(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{})
	testnet.IP(t, p.B, "link add spare0 type veth peer name spare1")
	u := uppers[0]
	u.build(t, p.B)
	err := p.B.Do(func() error {
		d, err := xdpfab.Open(limited(t), u.open, xdpfab.DomainAttr{XDP: fi.XDPNative})
		if err == nil {
			_ = d.CloseAll()
		}
		return err
	})
	if err == nil || !contains(err, "its sockets receive nothing", "--interface veth0", "--xdp generic") {
		t.Errorf("native XDP on a bond: %v", err)
	}
}

// When the active port of a bond fails while operations are on their way, they go on by
// the other one, each once.
func TestBondFailsOver(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{})
	testnet.IP(t, p.B, "link add spare0 type veth peer name spare1 netns "+p.A.Name)
	u := uppers[0]
	u.build(t, p.B)
	// The other side is a switch with an address.
	testnet.IP(t, p.A, "link add br0 type bridge", "link set veth0 master br0", "link set spare1 master br0",
		"addr flush dev veth0", "link set br0 up", "link set spare1 up", "addr add "+p.A.IP4.String()+"/24 dev br0")
	server, client := *p.B, *p.A
	server.IfName, client.IfName = u.open, "br0"
	testnet.Running(t, &server)
	testnet.Running(t, &client)
	serve(t, &server, xdpfab.DomainAttr{})
	d := open(t, &client, xdpfab.DomainAttr{XDP: fi.XDPGeneric})
	stop := make(chan struct{})
	var adders sync.WaitGroup
	defer adders.Wait()
	defer close(stop)
	var added [2]atomic.Uint64
	for n, addr := range []string{p.B.IP4.String(), p.B.MAC.String()} {
		w := word(t, d, addr, uint64(n))
		adders.Go(func() { addUntil(t, w, &added[n], stop) })
	}
	for _, change := range [][]string{nil, {"link set veth0 down"}, {"link set veth0 up", "link set spare1 down"},
		{"link set spare1 up"}} {
		testnet.IP(t, p.A, change...)
		for n := range added {
			from := added[n].Load()
			testnet.Eventually(t, fmt.Sprintf("adder %d goes on after %q", n, change), func() bool {
				return added[n].Load() > from+few
			})
		}
	}
}

// addUntil adds 1 without a pause, checks every value that comes back, and counts.
func addUntil(t *testing.T, w xdpfab.Remote[uint64], added *atomic.Uint64, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		want := added.Load() + 1
		n, err := within(t, func(ctx context.Context) (uint64, error) { return w.Add(ctx, 1) })
		if err != nil || n != want {
			t.Errorf("an addition: %d, %v; want %d", n, err, want)
			return
		}
		added.Store(n)
	}
}
