// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// discover calls GetInfo in the namespace of one side. It leaves out connected endpoints,
// unless the hints ask for them.
func discover(t *testing.T, s *testnet.Side, hints *fi.Info) (list []fi.Info, err error) {
	t.Helper()
	if e := s.Do(func() error { list, err = fi.GetInfo(ctx(t), hints); return nil }); e != nil {
		t.Fatal(e)
	}
	return ofOneType(hints, list), err
}

// Every way to use an interface is found, and each of them opens and carries atomics.
func TestGetInfoOnVeth(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{Queues: 1})
	list, err := discover(t, pair.A, nil)
	if err != nil || len(list) != 3 {
		t.Fatalf("%v, %v: want raw Ethernet, IPv4 and IPv6", list, err)
	}
	peers := map[fi.AddrFormat][2]string{
		fi.AddrEthernet: {pair.A.MAC.String(), pair.B.MAC.String()},
		fi.AddrIPv4:     {pair.A.IP4.String(), pair.B.IP4.String()},
		fi.AddrIPv6:     {pair.A.IP6.String(), pair.B.IP6.String()},
	}
	for _, i := range list {
		addrs := peers[i.AddrFormat]
		if i.Source != addrs[0] || i.Domain.Name != pair.A.IfName || len(i.Missing) > 0 || (i.Interface.Driver == "veth") != (testnet.Borrowed(t) == nil) || i.Interface.UDP != (i.AddrFormat != fi.AddrEthernet) {
			t.Errorf("%v", &i)
		}
		throughInfo(t, pair, &i, addrs[1])
	}
}

// throughInfo opens an info on one side, the way back on the other, and adds to a word.
func throughInfo(t *testing.T, pair *testnet.Pair, i *fi.Info, peer string) {
	t.Helper()
	back, err := discover(t, pair.B, &fi.Info{Source: peer})
	if err != nil || len(back) != 1 || back[0].AddrFormat != i.AddrFormat {
		t.Fatalf("%v, %v", back, err)
	}
	open := func(s *testnet.Side, i *fi.Info) (d *xdpfab.Domain) {
		err := s.Do(func() (err error) {
			d, err = on(openInfo(context.Background(), i, fi.DomainAttr{Progress: fi.ProgressManual}))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b := open(pair.A, i), open(pair.B, &back[0])
	defer a.CloseAll()
	defer b.CloseAll()
	ep, err := b.NewEndpoint(back[0].EndpointAttr())
	if err != nil || ep.Enable() != nil {
		t.Fatal(err)
	}
	if _, err := b.NewRegion("r", 64); err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), peer)
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "r", 1)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Add(ctx(t), 3); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	got := a.Info()
	if got.AddrFormat != i.AddrFormat || got.Source != i.Source || got.Fabric != i.Fabric || got.Transmit != i.Transmit || got.Domain.Progress != i.Domain.Progress {
		t.Errorf("in force:\n%v\nwant\n%v", &got, i)
	}
	if _, err := a.Dial(ctx(t), pair.B.IP4.String()); (err == nil) != got.Interface.UDP {
		t.Errorf("%v: UDP: %v", i.AddrFormat, err)
	}
	now, err := discover(t, pair.A, nil)
	if err != nil || len(now) != 1 || now[0].Domain.Instance != a.Domain || now[0].Transmit != i.Transmit {
		t.Errorf("while it is open: %v, %v", now, err)
	}
}

// The process that has an interface open finds its domain there; another one is told that
// the interface is in use.
func TestGetInfoOfOpenDomain(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{Queues: 1})
	list, err := discover(t, pair.A, &fi.Info{AddrFormat: fi.AddrIPv4,
		Domain: fi.DomainInfo{MRMode: fi.MRBasic, Progress: fi.ProgressManual}})
	basic := fi.MRVirtAddr | fi.MRAllocated | fi.MRProvKey
	if err != nil || len(list) != 1 || list[0].Domain.MRMode != basic || list[0].Domain.Progress != fi.ProgressManual {
		t.Fatal(list, err)
	}
	var d *xdpfab.Domain
	open := func() (err error) { d, err = on(openInfo(ctx(t), &list[0], fi.DomainAttr{})); return err }
	if err := pair.A.Do(open); err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	for _, hints := range []*fi.Info{nil, {Domain: fi.DomainInfo{Name: pair.A.IfName}}, {Domain: fi.DomainInfo{Instance: d.Domain}}} {
		now, err := discover(t, pair.A, hints)
		if err != nil || len(now) != 1 || now[0].Domain.Instance != d.Domain || now[0].AddrFormat != fi.AddrIPv4 || now[0].Source != pair.A.IP4.String() ||
			now[0].Domain.MRMode != basic || now[0].Domain.Progress != fi.ProgressManual {
			t.Errorf("%v, %v", now, err)
		}
	}
	for name, h := range map[string]fi.DomainInfo{"progress": {Progress: fi.ProgressManual}, "MR": {MRMode: fi.MRBasic},
		"more MR": {MRMode: basic | mrLocal}} {
		if _, err := discover(t, pair.A, &fi.Info{Domain: h}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, m := range []fi.MRMode{mrScalable, fi.MRVirtAddr} {
		if _, err := discover(t, pair.A, &fi.Info{Domain: fi.DomainInfo{MRMode: m}}); !errors.Is(err, fi.ErrNoInfo) {
			t.Errorf("%v: %v: the domain is open with other modes", m, err)
		}
	}
	if list, err := discover(t, pair.B, nil); err != nil || len(list) != 3 {
		t.Errorf("the other namespace: %v, %v", list, err)
	}
	first := d
	if err := pair.A.Do(open); !errors.Is(err, fi.ErrBusy) || !strings.HasSuffix(err.Error(),
		"a domain of this process has "+pair.A.IfName+" by AF_XDP, and one at a time can have it: use that one, which "+
			"fi.GetInfo returns as DomainInfo.Instance, or close it") {
		t.Errorf("opened twice: %v", err)
	}
	other := list[0].Clone()
	other.AddrFormat, other.Source = fi.AddrIPv6, pair.A.IP6.String()
	err = pair.A.Do(func() error { _, err := openInfo(ctx(t), other, fi.DomainAttr{}); return err })
	if err == nil || !strings.Contains(err.Error(), "in use by another xdpfab") {
		t.Errorf("opened twice, by another way: %v", err)
	}
	d = first
	if out, err := discoverElsewhere(t, pair.A, "+all"); err == nil || !strings.Contains(out, "in use by another xdpfab") || strings.Contains(out, "of this process") {
		t.Errorf("another process: %v, %s", err, out)
	}
	if err := d.CloseAll(); err != nil {
		t.Fatal(err)
	}
	if list, err := discover(t, pair.A, nil); err != nil || len(list) != 3 || list[0].Domain.Instance != nil {
		t.Errorf("after it was closed: %v, %v", list, err)
	}
}

// What cannot be had is refused with its reason, before anything is opened.
func TestGetInfoRefusalsOnVeth(t *testing.T) {
	testnet.Require(t)
	granted := testnet.Granted(t)
	queues := min(2, granted.Queues)
	pair := testnet.NewPair(t, testnet.Options{Queues: queues})
	refused := map[string]*fi.Info{
		`"absent0": no such interface`:                                   {Domain: fi.DomainInfo{Name: "absent0"}},
		"not an Ethernet interface":                                      {Domain: fi.DomainInfo{Name: "lo"}},
		"src_addr 10.9.9.9: want " + pair.A.IP4.String():                 {Source: "10.9.9.9"},
		"caps collective: not offered, want some of " + allCaps.String(): {Caps: capCollective},
	}
	if granted.Copy == "copy" {
		refused["nic.copy zero-copy: want copy"] = &fi.Info{Interface: fi.InterfaceInfo{Copy: "zero-copy"}}
	}
	for say, h := range refused {
		if list, err := discover(t, pair.A, h); !errors.Is(err, fi.ErrNoInfo) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, %v: want %q", list, err, say)
		}
	}
	list, err := discover(t, pair.A, &fi.Info{AddrFormat: fi.AddrEthernet})
	if err != nil || len(list) != 1 || list[0].Domain.TXContexts != fi.Limit(queues) || list[0].Domain.RXContexts != fi.Limit(queues) {
		t.Fatalf("%v, %v", list, err)
	}
	wrong := list[0].Clone()
	wrong.Transmit.MsgOrder |= fi.OrderNone
	gone := list[0].Clone()
	gone.Interface.MAC = "02:00:00:00:ff:ff"
	for say, i := range map[string]*fi.Info{"msg_order none": wrong, "nic.mac": gone, "names no interface": {}} {
		err := pair.A.Do(func() error { _, err := openInfo(ctx(t), i, fi.DomainAttr{}); return err })
		if !errors.Is(err, fi.ErrNoInfo) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v: want %q", err, say)
		}
	}
	late, cancel := context.WithCancelCause(ctx(t))
	cancel(errors.New("tea time"))
	if _, err := fi.GetInfo(late, nil); err == nil || err.Error() != "tea time" {
		t.Error(err)
	}
	manual := &fi.Info{Domain: fi.DomainInfo{Progress: fi.ProgressManual}}
	if list, err := discover(t, pair.A, manual); err != nil || list[0].Domain.Progress != fi.ProgressManual || list[0].Domain.TXContexts != fi.Limit(queues) || list[0].Domain.RXContexts != fi.Limit(queues) {
		t.Errorf("manual progress on %d queues: %v, %v", queues, list, err)
	}
}

const allCaps = fi.CapMsg | fi.CapTagged | fi.CapSend | fi.CapRecv | fi.CapMultiRecv | fi.CapDirectedRecv | fi.CapRMA | fi.CapRMAEvent | fi.CapSource | fi.CapSourceErr | fi.CapAtomic | fi.CapNamedRX | fi.CapAVUserID | fi.CapRead | fi.CapWrite | fi.CapRemoteRead | fi.CapRemoteWrite |
	fi.CapFence | fi.CapTrigger | fi.CapSharedAV | fi.CapLocalComm | fi.CapRemoteComm

// asDiscoverer makes the test program print what GetInfo finds.
const asDiscoverer = "XDPFAB_TEST_DISCOVERER"

// Discovery needs no privilege, and says which ones are missing.
func TestGetInfoUnprivileged(t *testing.T) {
	if os.Getenv(asDiscoverer) != "" {
		list, err := fi.GetInfo(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = json.NewEncoder(os.Stdout).Encode(list[0].Missing)
		return
	}
	testnet.Require(t)
	out, err := discoverElsewhere(t, testnet.NewPair(t, testnet.Options{}).A, "-all")
	for _, want := range []string{"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF", "CAP_PERFMON", "run as root, or `setcap"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: no %q in %s", err, want, out)
		}
	}
}

// discoverElsewhere returns what GetInfo finds in another process, with the given
// change of its capabilities.
func discoverElsewhere(t *testing.T, s *testnet.Side, capabilities string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("needs setpriv (util-linux) to drop capabilities")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.Command("setpriv", "--bounding-set="+capabilities, "--inh-caps=-all", exe, "-test.run=^TestGetInfoUnprivileged$")
	cmd.Env = append(os.Environ(), asDiscoverer+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Endpoints of one domain on a real interface reach each other, although nothing that
// they send would come back from the network.
func TestLocalCommunicationOnVeth(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{Queues: min(2, testnet.Granted(t).Queues)})
	err := pair.A.Do(func() error {
		d, err := xdpfab.Open(context.Background(), pair.A.IfName, fi.DomainAttr{})
		if err != nil {
			return err
		}
		defer d.CloseAll()
		addToOwnWord(t, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
