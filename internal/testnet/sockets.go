// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Get returns the answer to an HTTP request, which a connection of its own carries.
func Get(t testing.TB, url string) (code int, body string) {
	t.Helper()
	c := &http.Client{Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// StoppedDaemon listens at a control socket as a daemon does that is stopped: the kernel
// lets programs connect, and nobody answers them.
func StoppedDaemon(t testing.TB) (path string, l *net.UnixListener) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path, l
}

// XDPSocket is a minimal AF_XDP socket: with a fill ring, which is all that a map of such
// sockets requires, and an RX ring, which it requires from Linux 7 on.
func XDPSocket(t testing.TB) *os.File {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("socket(AF_XDP): %v", err)
	}
	socket := os.NewFile(uintptr(fd), "AF_XDP socket")
	t.Cleanup(func() { socket.Close() })
	for _, ring := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_RX_RING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, ring, 64); err != nil {
			t.Fatalf("ring %d: %v", ring, err)
		}
	}
	return socket
}
