// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

func TestPairCarriesTraffic(t *testing.T) {
	p := NewPair(t, Options{Queues: 2, MTU: 1400})
	for _, dst := range []netip.Addr{p.B.IP4, p.B.IP6} {
		var in, out net.Conn
		at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, 9))
		if err := p.B.Do(func() (err error) { in, err = net.ListenUDP("udp", at); return }); err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := p.A.Do(func() (err error) { out, err = net.DialUDP("udp", nil, at); return }); err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		// Both sockets are used from this thread, outside of either namespace.
		if _, err := out.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 16)
		if n, err := in.Read(buf); err != nil || string(buf[:n]) != "hello" {
			t.Fatalf("over %s: got %q, %v", dst, buf[:n], err)
		}
	}
}

func TestOptionsReachBothSides(t *testing.T) {
	p := NewPair(t, Options{Queues: 3, MTU: 1400})
	for _, s := range []*Side{p.A, p.B} {
		out, err := s.Command("sh", "-c", "cat /sys/class/net/veth0/mtu; ls -d /sys/class/net/veth0/queues/rx-* | wc -l").CombinedOutput()
		if got := strings.Fields(string(out)); err != nil || len(got) != 2 || got[0] != "1400" || got[1] != "3" {
			t.Errorf("%s: mtu and queues: got %q, %v; want 1400 and 3", s.Name, out, err)
		}
		if s.IfIndex == 0 || len(s.MAC) != 6 {
			t.Errorf("%s: index %d, MAC %v not filled in", s.Name, s.IfIndex, s.MAC)
		}
	}
	if p.A.MAC.String() == p.B.MAC.String() {
		t.Errorf("both sides have MAC %s", p.A.MAC)
	}
}

func TestDoStaysInside(t *testing.T) {
	p := NewPair(t, Options{})
	host, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var inside string
	want := errors.New("from inside")
	got := p.A.Do(func() error {
		inside, _ = os.Readlink("/proc/thread-self/ns/net")
		return want
	})
	if got != want {
		t.Errorf("Do returned %v, want the function's own error", got)
	}
	if inside == host || inside == "" {
		t.Errorf("Do ran in %q, the host is in %q", inside, host)
	}
	if after, _ := os.Readlink("/proc/thread-self/ns/net"); after != host {
		t.Errorf("after Do this thread is in %q, want %q", after, host)
	}
}

func TestIPRunsInside(t *testing.T) {
	p := NewPair(t, Options{})
	IP(t, p.A, "link set veth0 mtu 1300", "addr flush dev veth0", "addr add 10.9.9.9/24 dev veth0")
	out := IP(t, p.A, "addr show dev veth0")
	if !strings.Contains(out, "mtu 1300") || !strings.Contains(out, "10.9.9.9/24") || strings.Contains(out, p.A.IP4.String()) {
		t.Errorf("the interface is %q", out)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	Require(t)
	var names []string
	t.Run("inner", func(t *testing.T) {
		p := NewPair(t, Options{})
		names = append(names, p.A.Name, p.B.Name)
		if err := p.B.Do(func() error { t.SkipNow(); return nil }); err != nil {
			t.Fatal(err)
		}
		t.Fatal("Do returned although the function left the goroutine")
	})
	if len(names) != 2 {
		t.Fatal("inner test made no pair")
	}
	for _, n := range names {
		if _, err := os.Stat(filepath.Join("/run/netns", n)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("namespace %s still there: %v", n, err)
		}
	}
}

// Tests that run at the same time have the NICs in turn, also those of one parent. Who
// has a pair gets no second one, nor does its subtest: neither could wait for it.
func TestNICsInTurn(t *testing.T) {
	home := NewVeth(t, Options{}).A
	IP(t, home, "link add nic0 type veth peer name nic1")
	t.Setenv(NICsEnv, "nic0 nic1")
	t.Setenv(NICModesEnv, "native copy")
	t.Setenv(NICQueuesEnv, "1")
	borrow := func(t *testing.T) {
		t.Helper()
		if err := home.Do(func() error { NewPair(t, Options{}); return nil }); err != nil {
			t.Error(err)
		}
	}
	var had, second atomic.Int32
	t.Run("of one parent", func(t *testing.T) {
		for i := range 3 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				borrow(t)
				had.Add(1)
				t.Run("second", func(t *testing.T) {
					borrow(t)
					second.Add(1)
				})
			})
		}
	})
	if had.Load() != 3 || second.Load() != 0 {
		t.Errorf("%d tests of 3 had the NICs, and %d had them twice", had.Load(), second.Load())
	}
}
