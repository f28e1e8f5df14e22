// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// boundSocket is an AF_XDP socket on queue 0 of an interface that receives
// nothing: its fill ring stays empty, so the kernel counts each frame that
// reaches it as dropped. That is enough for a test of steering.
func boundSocket(t *testing.T, ifindex int) *os.File {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "AF_XDP socket")
	t.Cleanup(func() { f.Close() })
	mem, err := unix.Mmap(-1, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&mem[0]))), Len: uint64(len(mem)), Size: 2048}
	raw := unsafe.String((*byte)(unsafe.Pointer(&reg)), unsafe.Sizeof(reg))
	if err := unix.SetsockoptString(fd, unix.SOL_XDP, unix.XDP_UMEM_REG, raw); err != nil {
		t.Fatalf("XDP_UMEM_REG: %v", err)
	}
	for _, ring := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, ring, 64); err != nil {
			t.Fatalf("ring %d: %v", ring, err)
		}
	}
	at := &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(ifindex)}
	if err := unix.Bind(fd, at); err != nil {
		t.Fatalf("bind: %v", err)
	}
	return f
}

// arrivals is the number of frames that reached a boundSocket.
func arrivals(t *testing.T, f *os.File) uint64 {
	t.Helper()
	var s unix.XDPStatistics
	n := uint32(unsafe.Sizeof(s))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, f.Fd(), unix.SOL_XDP, unix.XDP_STATISTICS,
		uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		t.Fatalf("XDP_STATISTICS: %v", errno)
	}
	return s.Rx_dropped
}

// Real packets reach the real socket of their lane; those of other lanes do not.
func TestDelivery(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
			p := mustLoad(t, cfg, 1)
			if err := p.Attach(pair.B.IfIndex, mode); err != nil {
				t.Fatal(err)
			}
			socket := boundSocket(t, pair.B.IfIndex)
			if err := p.SetSocket(0, testLane, int(socket.Fd())); err != nil {
				t.Fatal(err)
			}
			other := fab(3, 46)
			other[5] = 0
			err := pair.A.Do(func() error {
				for range 5 {
					for _, frame := range [][]byte{fab(3, 46), other} {
						if err := send(pair.B.IP4, frame); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			n := await(t, p, func(n [NumReasons]uint64) bool { return n[Redirect]+n[DropNoSocket] >= 10 })
			if n[Redirect] != 5 || n[DropNoSocket] != 5 {
				t.Errorf("%v: counters %v, want 5 frames of each lane", mode, n)
			}
			// The program has counted a frame before it is delivered.
			testnet.Eventually(t, mode.String()+": 5 frames have reached the socket", func() bool { return arrivals(t, socket) >= 5 })
			if got := arrivals(t, socket); got != 5 {
				t.Errorf("%v: %d frames reached the socket, want 5", mode, got)
			}
		})
	}
}
