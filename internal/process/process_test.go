// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestStopped(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if Stopped(pid) || Stopped(0) || Stopped(1<<30) {
		t.Error("stopped")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the process is stopped", func() bool { return Stopped(pid) })
	testnet.Eventually(t, "the process has its program", func() bool { return Name(pid) == "sleep" })
	if Name(0) != "" || Namespace(0) != 0 || Namespace(pid) != Namespace(os.Getpid()) || Namespace(pid) == 0 {
		t.Errorf("%q, namespaces %d and %d", Name(0), Namespace(pid), Namespace(os.Getpid()))
	}
}

func TestListensAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "a.sock")
	later, err := net.Listen("unix", second)
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	if got := ListensAt(os.Getpid()); !slices.Equal(got, []string{path, second}) {
		t.Errorf("%q, want %s and then %s", got, path, second)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ListensAt(os.Getpid()); slices.Contains(got, path) || ListensAt(0) != nil {
		t.Errorf("%q of a closed socket", got)
	}
}

// A socket whose file was removed is still one at which its process listens.
func TestListenersAt(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "x.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want := []Listener{{path, os.Getpid()}}
	for _, pattern := range []string{path, filepath.Join(folder, "*.sock")} {
		if got := ListenersAt(pattern); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
	if got := ListenersAt(filepath.Join(folder, "*.lock")); got != nil {
		t.Errorf("%v by another pattern", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ListenersAt(path); got != nil {
		t.Errorf("%v of a closed socket", got)
	}
}

// The holder of a port of one address is found, and not that of another address.
func TestHolderOfPort(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		c, err := net.ListenPacket("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		at := c.LocalAddr().(*net.UDPAddr).AddrPort()
		if got := HolderOfPort(at); got != os.Getpid() || !HasPort(at) {
			t.Errorf("%v: process %d, want %d", at, got, os.Getpid())
		}
		other := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), at.Port())
		if got := HolderOfPort(other); got != 0 {
			t.Errorf("%v: process %d, want none", other, got)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if got := HolderOfPort(at); got != 0 || HasPort(at) {
			t.Errorf("%v: process %d of a closed socket", at, got)
		}
	}
}
