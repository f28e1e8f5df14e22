// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// The types are those of package veth, so that helpers can be shared by the
// demo command and the tests.
type (
	Pair    = veth.Pair
	Side    = veth.Side
	Star    = veth.Star
	Routed  = veth.Routed
	Options = veth.Options
)

// noRootEnv, when it is set, to any value, makes root skip what others cannot run.
const noRootEnv = "XDPFAB_NO_ROOT"

// Require skips the test unless it runs as root with the capabilities to make
// namespaces and devices (CAP_NET_ADMIN, CAP_SYS_ADMIN).
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv(noRootEnv) != "" {
		t.Skip("left out: " + noRootEnv + " is set")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces; run the tests under sudo")
	}
	eff := effective()
	for _, c := range []struct {
		bit  uint
		name string
	}{{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}} {
		if eff&(1<<c.bit) == 0 {
			t.Skipf("needs root: this root lacks %s, which creating network namespaces takes", c.name)
		}
	}
}

// effective returns the capability set in effect, or 0 if it cannot be read.
func effective() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
			return n
		}
	}
	return 0
}

// NewPair builds a pair and removes it when the test and its subtests are over.
// It skips the test where Require does and fails it if the pair cannot be built. The
// pair is a veth, or the two NICs of a virtual machine that has them; see Borrowed.
func NewPair(t testing.TB, o Options) *Pair {
	t.Helper()
	if n := Borrowed(t); n != nil {
		return n.borrow(t, o)
	}
	return NewVeth(t, o)
}

// NewVeth builds a pair that is a veth, for tests of what only a veth does. Where NICs
// are given, it skips the test, and so do the topologies below.
func NewVeth(t testing.TB, o Options) *Pair {
	t.Helper()
	SkipOnNICs(t, "a veth")
	return build(t, func() (*Pair, error) { return veth.New(o) })
}

// NewStar builds a star of n sides, as NewPair builds a pair.
func NewStar(t testing.TB, n int, o Options) *Star {
	t.Helper()
	SkipOnNICs(t, "a star of veths")
	return build(t, func() (*Star, error) { return veth.NewStar(n, o) })
}

// NewRouted builds two subnets with a router between them, as NewPair builds a
// pair.
func NewRouted(t testing.TB, o Options) *Routed {
	t.Helper()
	SkipOnNICs(t, "veths to a router")
	return build(t, func() (*Routed, error) { return veth.NewRouted(o) })
}

// NewVLAN builds a pair whose sides are on a VLAN: their interfaces are 802.1Q ones.
// It skips the test if the kernel lacks those.
func NewVLAN(t testing.TB, id int, o Options) *Pair {
	t.Helper()
	p := NewVeth(t, o)
	for _, s := range []*Side{p.A, p.B} {
		err := s.Tag(id)
		if errors.Is(err, veth.ErrNoVLAN) {
			SkipUnlessVM(t, err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func build[N io.Closer](t testing.TB, make func() (N, error)) N {
	t.Helper()
	Require(t)
	n, err := make()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("removing the test network: %v", err)
		}
	})
	return n
}

// VMEnv is set, to any value, inside the virtual machines of package vm.
const VMEnv = "XDPFAB_VM"

// SkipUnlessVM skips a test because the kernel's configuration lacks something.
// Inside a virtual machine, whose kernel lacks nothing, that is a failure.
func SkipUnlessVM(t testing.TB, reason error) {
	t.Helper()
	if os.Getenv(VMEnv) != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// KernelBefore reports whether the running kernel is older than a version. A test
// that skips because the kernel lacks a feature calls it too, so that a skip on a
// kernel that should have the feature is a failure.
func KernelBefore(t testing.TB, major, minor int) bool {
	t.Helper()
	_, v := Kernel(t)
	return !v.AtLeast(kernel.Version{Major: major, Minor: minor})
}

// Kernel returns the running kernel's release, and its version.
func Kernel(t testing.TB) (release string, v kernel.Version) {
	t.Helper()
	release, err := kernel.Release()
	if err != nil {
		t.Fatal(err)
	}
	if v, err = kernel.Parse(release); err != nil {
		t.Fatal(err)
	}
	return release, v
}

// IP runs ip(8) commands, without options, in a side's namespace and returns what they
// print. One process runs them all: to start it takes longer than what it does. The
// test fails at the first command that fails.
func IP(t testing.TB, side *Side, commands ...string) string {
	t.Helper()
	cmd := exec.Command("ip", "-n", side.Name, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(commands, "; "), err, out)
	}
	return string(out)
}
