// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A program that takes UDP packets is told from one that does not, with the folder where
// it is pinned.
func TestHolderTakes(t *testing.T) {
	folder := testnet.BPFFS(t)
	other := []netip.Addr{netip.MustParseAddr("203.0.113.7")}
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		takes := func(addrs []netip.Addr, want bool) *BusyError {
			t.Helper()
			b, err := Holder(pair.B.IfName, pair.B.IfIndex)
			if err != nil || b == nil {
				t.Fatalf("%v, %v: want a program", b, err)
			}
			if got, err := b.Takes(addrs); got != want || err != nil {
				t.Errorf("takes packets to %v: %t, %v", addrs, got, err)
			}
			return b
		}
		p := mustLoad(t, cfg, 1)
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Fatal(err)
		}
		b := takes([]netip.Addr{other[0], pair.B.IP6}, true)
		takes(other, false)
		if at := b.Folder(); at != "" {
			t.Errorf("folder %q of a program that is pinned nowhere", at)
		}
		if err := p.Pin(folder); err != nil {
			t.Fatal(err)
		}
		if at := pinnedBelow(folder, b.LinkID); at != folder {
			t.Errorf("found in %q, want %q", at, folder)
		}
		if at := pinnedBelow(folder, b.LinkID+1); at != "" {
			t.Errorf("another link is found in %q", at)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		takes(cfg.Addrs, true) // without its process
		if err := DetachPinned(folder); err != nil {
			t.Fatal(err)
		}
		l, err := link.AttachXDP(link.XDPOptions{Program: echoer(t), Interface: pair.B.IfIndex, Flags: link.XDPDriverMode})
		if err != nil {
			t.Fatal(err)
		}
		defer detach(l)
		takes(cfg.Addrs, false)
	})
}

// ownMounts tells a process that it has mounts of its own.
const ownMounts = "XDPFAB_BPF_TEST_MOUNTS"

// The folder is found on whatever BPF file system is mounted. The test mounts one in a
// process of its own: a thread with mounts of its own would go back to those that run
// other tests, and names of namespaces made on it are seen on no other one.
func TestHolderFolder(t *testing.T) {
	testnet.Require(t)
	if os.Getenv(ownMounts) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHolderFolder$", "-test.v")
		cmd.Env = append(os.Environ(), ownMounts+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "=== RUN   TestHolderFolder") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "a blank") // which the list of mounts escapes
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		if err := errors.Join(unix.Mount("bpf", dir, "bpf", 0, ""), os.Mkdir(dir+"/node", 0o700)); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		p := mustLoad(t, cfg, 1)
		if err := errors.Join(p.Attach(pair.B.IfIndex, Native), p.Pin(dir+"/node")); err != nil {
			t.Fatal(err)
		}
		b, err := Holder(pair.B.IfName, pair.B.IfIndex)
		if err != nil || b == nil || b.Folder() != dir+"/node" {
			t.Errorf("%v, %v: want the folder %s", b, err, dir+"/node")
		}
		if err := p.Unpin(); err != nil {
			t.Error(err)
		}
	})
}
