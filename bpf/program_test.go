// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// childEnv makes the test binary act as a child process of a test: "attach
// <ifindex>" or "without <capability number>".
const childEnv = "XDPFAB_BPF_TEST_CHILD"

func TestMain(m *testing.M) {
	role := strings.Fields(os.Getenv(childEnv))
	if len(role) != 2 {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(role[1])
	if err == nil && role[0] == "attach" {
		err = childAttach(n)
	} else if err == nil {
		err = childWithout(n)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// childAttach attaches, says so, and waits to be killed or orphaned.
func childAttach(ifindex int) error {
	p, err := Load(Config{MAC: ourMAC}, 1)
	if err != nil {
		return err
	}
	if err := p.Attach(ifindex, Native); err != nil {
		return err
	}
	fmt.Println("program", p.ID())
	_, err = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(p) // its finalizer would close the link
	return err
}

// childWithout tries to load without one capability.
func childWithout(capability int) error {
	runtime.LockOSThread()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	for _, c := range []int{capability, unix.CAP_SYS_ADMIN} { // the latter stands in for any
		data[c/32].Effective &^= 1 << (c % 32)
	}
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return err
	}
	p, err := Load(Config{MAC: ourMAC}, 1)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("not fs.ErrPermission: %w", err)
	}
	if err == nil {
		return p.Close()
	}
	return err
}

func child(cmd *exec.Cmd, role string, n int) *exec.Cmd {
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", childEnv, role, n))
	return cmd
}

func TestKilledProcessLeavesInterfaceClean(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		cmd := child(pair.B.Command(os.Args[0]), "attach", pair.B.IfIndex)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe() // ends the child if this test dies first
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		var id uint32
		if _, err := fmt.Sscanf(line, "program %d", &id); err != nil {
			t.Errorf("child says %q", line)
		}
		wantXDP(t, pair.B.IfIndex, id, nl.XDP_ATTACHED_DRV)
		if err := cmd.Process.Signal(unix.SIGKILL); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("child ended with %v", err)
		}
		wantXDP(t, pair.B.IfIndex, 0, nl.XDP_ATTACHED_NONE)
		if err := mustLoad(t, cfg, 1).Attach(pair.B.IfIndex, Native); err != nil {
			t.Errorf("after the kill: %v", err)
		}
	})
}

func TestMissingCapabilityIsNamed(t *testing.T) {
	testnet.Require(t)
	for _, c := range needed {
		out, err := child(exec.Command(os.Args[0]), "without", int(c.bit)).CombinedOutput()
		want := "missing " + c.name + ":"
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "not fs.") {
			t.Errorf("without %s: %v, %q; want an error with %q", c.name, err, out, want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	valid := testConfig()
	with := func(f func(*Config)) Config { c := valid; f(&c); return c }
	addrs := func(a ...string) Config {
		return with(func(c *Config) {
			c.Addrs = nil
			for _, s := range a {
				c.Addrs = append(c.Addrs, netip.MustParseAddr(s))
			}
		})
	}
	for _, c := range []struct {
		name   string
		cfg    Config
		queues int
		want   string
	}{
		{"no queue", valid, 0, "receive queues"},
		{"1025 queues", valid, 1025, "receive queues"},
		{"no MAC", with(func(c *Config) { c.MAC = [6]byte{} }), 1, "MAC"},
		{"group MAC", with(func(c *Config) { c.MAC[0] |= 1 }), 1, "MAC"},
		{"MTU 255", with(func(c *Config) { c.MTU = 255 }), 1, "MTU"},
		{"MTU 65536", with(func(c *Config) { c.MTU = 65536 }), 1, "MTU"},
		{"negative MTU", with(func(c *Config) { c.MTU = -1 }), 1, "MTU"},
		{"VLAN policy", with(func(c *Config) { c.VLAN = 4095 }), 1, "VLAN"},
		{"multicast", addrs("224.0.0.1"), 1, "unicast"},
		{"unspecified", addrs("::"), 1, "unicast"},
		{"mapped unspecified", addrs("::ffff:0.0.0.0"), 1, "unicast"},
		{"invalid", with(func(c *Config) { c.Addrs = []netip.Addr{{}} }), 1, "unicast"},
		{"too many addresses", with(func(c *Config) { c.Addrs = many(MaxAddrs + 1) }), 1, "at most 1024"},
	} {
		p, err := Load(c.cfg, c.queues)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error about %q", c.name, err, c.want)
		}
	}
}

// many are different addresses of both families.
func many(n int) (addrs []netip.Addr) {
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		if i%2 == 1 {
			a = netip.AddrFrom16([16]byte{0xfd, 1, 14: byte(i >> 8), 15: byte(i)})
		}
		addrs = append(addrs, a)
	}
	return addrs
}

func TestSocketSlots(t *testing.T) {
	p := mustLoad(t, testConfig(), 2)
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	good := int(setSocket(t, p, 1, 63).Fd())
	for _, c := range []struct {
		name            string
		queue, lane, fd int
		want            string
	}{
		{"queue", 2, 0, good, "no slot"},
		{"negative queue", -1, 64, good, "no slot"},
		{"lane", 0, 64, good, "no slot"},
		{"negative lane", 1, -1, good, "no slot"},
		{"fd", 0, 0, -1, "bad file descriptor"},
		{"not a socket", 0, 0, int(file.Fd()), "socket"},
	} {
		if err := p.SetSocket(c.queue, c.lane, c.fd); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
	for range 2 {
		if err := p.ClearSocket(1, 63); err != nil {
			t.Errorf("ClearSocket: %v", err)
		}
	}
	if err := p.ClearSocket(2, 0); err == nil {
		t.Error("cleared a slot that does not exist")
	}
}

func TestClosed(t *testing.T) {
	p := mustLoad(t, testConfig(), 1)
	if p.ID() == 0 {
		t.Error("program id is 0")
	}
	var wg sync.WaitGroup
	for range 4 { // the race detector's part
		wg.Go(func() {
			for {
				if _, err := p.Counters(); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				p.Mode()
			}
		})
	}
	wg.Go(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	for name, err := range map[string]error{
		"Attach": p.Attach(loopback, Generic), "SetSocket": p.SetSocket(0, 0, 0), "ClearSocket": p.ClearSocket(0, 0),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want %v", name, err, ErrClosed)
		}
	}
}

// Neither success nor failure leaves descriptors open.
func TestNoDescriptorLeaks(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		held := mustLoad(t, cfg, 1)
		if err := held.Attach(pair.B.IfIndex, Native); err != nil {
			t.Fatal(err)
		}
		use := func() {
			for _, ifindex := range []int{pair.B.IfIndex, loopback} { // busy; no native; generic
				for _, mode := range []Mode{Native, Generic} {
					p, err := Load(cfg, 1)
					if err != nil {
						t.Fatal(err)
					}
					err = p.Attach(ifindex, mode)
					if want := ifindex == loopback && mode == Generic; (err == nil) != want {
						t.Errorf("attaching to %d in mode %v: %v", ifindex, mode, err)
					}
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		}
		use() // a library opens some descriptors once
		before := descriptors(t)
		for range 5 {
			use()
		}
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors are open, %d were before", after, before)
		}
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}
