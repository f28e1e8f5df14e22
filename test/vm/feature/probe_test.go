// SPDX-License-Identifier: Apache-2.0

//go:build linux

package feature

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Structures and numbers of bpf(2), from the kernel's include/uapi/linux/bpf.h, as
// short as the oldest kernels accept them.
type (
	progLoad struct {
		kind, count   uint32
		code, license uint64
	}
	linkCreate struct{ prog, ifindex, attach uint32 }
	mapCreate  struct{ kind, key, value, entries, flags uint32 }
)

const (
	cmdMapCreate  = 0
	cmdProgLoad   = 5
	cmdLinkCreate = 28
	progXDP       = 6
	attachXDP     = 37
	mapArray      = 2
	mapMmapable   = 1 << 10
	xdpPass       = 2
)

// pass loads an XDP program that passes everything.
func pass(t *testing.T) int {
	t.Helper()
	code := []uint64{0xb7 | xdpPass<<32, 0x95} // r0 = XDP_PASS; exit
	license := []byte("Apache-2.0\x00")
	fd, err := bpf(cmdProgLoad, &progLoad{kind: progXDP, count: 2, code: address(code), license: address(license)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func probeNative(t *testing.T, p *testnet.Pair) error {
	const driverMode = 1 << 2 // XDP_FLAGS_DRV_MODE
	l, err := netlink.LinkByIndex(p.A.IfIndex)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetXdpFdWithFlags(l, pass(t), driverMode); err != nil {
		return err
	}
	return netlink.LinkSetXdpFdWithFlags(l, -1, driverMode)
}

func probeLink(t *testing.T, p *testnet.Pair) error {
	fd, err := bpf(cmdLinkCreate, &linkCreate{prog: uint32(pass(t)), ifindex: uint32(p.A.IfIndex), attach: attachXDP})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func probeMmapable(*testing.T, *testnet.Pair) error {
	fd, err := bpf(cmdMapCreate, &mapCreate{mapArray, 4, 8, 1, mapMmapable})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// socket is an AF_XDP socket until the test's end.
func socket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func probeNeedWakeup(t *testing.T, _ *testnet.Pair) error {
	const withFlags = 4 * 4 * 8 // four rings, four offsets each
	n, err := mmapOffsetsLen(socket(t))
	if err == nil && n < withFlags {
		return unix.ENOSYS
	}
	return err
}

func probeBusyPoll(t *testing.T, _ *testnet.Pair) error {
	return unix.SetsockoptInt(socket(t), unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL, 1)
}

func probeBudget(t *testing.T, _ *testnet.Pair) error {
	s := withRings(t)
	return unix.SetsockoptInt(s, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, 64)
}

// withRings is a socket with rings, of 64 entries, on a UMEM of 64 chunks.
func withRings(t *testing.T) int {
	t.Helper()
	fd := socket(t)
	memory, err := unix.Mmap(-1, 0, 64*2048, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	if err := registerUMEM(fd, memory); err != nil {
		t.Fatal(err)
	}
	rings(t, fd)
	return fd
}

func rings(t *testing.T, fd int) {
	t.Helper()
	for _, r := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING, unix.XDP_TX_RING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, r, 64); err != nil {
			t.Fatal(err)
		}
	}
}

// probeShared binds two sockets with one UMEM to two queues.
func probeShared(t *testing.T, p *testnet.Pair) error {
	first, second := withRings(t), socket(t)
	at := unix.SockaddrXDP{Ifindex: uint32(p.A.IfIndex), Flags: unix.XDP_COPY}
	if err := unix.Bind(first, &at); err != nil {
		return errors.Join(errors.New("the first socket"), err)
	}
	rings(t, second)
	return unix.Bind(second, &unix.SockaddrXDP{
		Ifindex: uint32(p.A.IfIndex), QueueID: 1, Flags: unix.XDP_SHARED_UMEM, SharedUmemFD: uint32(first),
	})
}

func probeMultiBuffer(t *testing.T, p *testnet.Pair) error {
	return unix.Bind(withRings(t), &unix.SockaddrXDP{Ifindex: uint32(p.A.IfIndex), Flags: unix.XDP_COPY | unix.XDP_USE_SG})
}

// probeXDPFeatures asks for the generic netlink family that tells them. Its
// existence is enough: NETDEV_A_DEV_XDP_FEATURES came with it, in the same
// release.
func probeXDPFeatures(*testing.T, *testnet.Pair) error {
	_, err := netlink.GenlFamilyGet("netdev")
	return err
}
