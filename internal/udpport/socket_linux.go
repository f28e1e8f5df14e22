// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// socket is a UDP socket that is bound to one address of this node.
type socket struct {
	fd       int
	addr     netip.Addr
	as16     [16]byte // addr, as in a wire.Way
	gathers  bool     // the kernel cuts one long message into datagrams (UDP_SEGMENT)
	coalesce bool     // the kernel delivers datagrams of one sender as one message (UDP_GRO)
}

// socketBuffer is how many bytes the kernel is asked to keep for each direction. Without
// CAP_NET_ADMIN it keeps no more than net.core.rmem_max and wmem_max.
const socketBuffer = 4 << 20

// openSocket binds a socket of the calling thread's network namespace.
func openSocket(addr netip.Addr, o Options) (s *socket, err error) {
	s = &socket{addr: addr, as16: addr.As16()}
	if s.fd, err = unix.Socket(family(addr), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("udp: a socket for %v: %w", addr, os.NewSyscallError("socket", err))
	}
	for _, x := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, x[0], socketBuffer) != nil {
			_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, x[1], socketBuffer) // as much as is allowed
		}
	}
	if !o.Single {
		s.coalesce = unix.SetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		s.gathers = unix.SetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0) == nil
	}
	if err := unix.Bind(s.fd, sockaddr(addr, wire.UDPPort)); err != nil {
		return nil, errors.Join(bindError(addr, err), s.close())
	}
	return s, nil
}

func (s *socket) close() error { return unix.Close(s.fd) }

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(a netip.Addr, port int) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: a.As16(), Port: port}
}

// nameLen is the length of the longest socket address in use, bytes: struct sockaddr_in6.
const nameLen = unix.SizeofSockaddrInet6

// putName writes the socket address of a peer, and returns its length. The address is as
// in a wire.Way.
func putName(b *[nameLen]byte, a *[16]byte, four bool) uint32 {
	binary.BigEndian.PutUint16(b[2:], wire.UDPPort)
	if four {
		binary.NativeEndian.PutUint16(b[:], unix.AF_INET)
		copy(b[4:8], a[12:])
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(b[:], unix.AF_INET6)
	clear(b[4:8])
	copy(b[8:24], a[:])
	clear(b[24:])
	return unix.SizeofSockaddrInet6
}

// nameOf reads the address of a sender, as in a wire.Way.
func nameOf(b *[nameLen]byte, four bool) (a [16]byte) {
	if four {
		a[10], a[11] = 0xff, 0xff
		copy(a[12:], b[4:8])
		return a
	}
	return [16]byte(b[8:])
}

// scout is a socket that sends nothing: it asks the kernel for ways. It stays in the
// network namespace of the thread that opened it.
type scout struct{ fd int }

// newScout returns a scout from one address of this node; if that is unspecified, from
// any of its family.
func newScout(from netip.Addr) (scout, error) {
	fd, err := unix.Socket(family(from), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return scout{-1}, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, sockaddr(from, 0)); err != nil {
		_ = unix.Close(fd)
		return scout{-1}, os.NewSyscallError("bind", err)
	}
	return scout{fd}, nil
}

// reach returns the address from which the kernel would send to another one.
func (s scout) reach(to netip.Addr) (netip.Addr, error) {
	if err := unix.Connect(s.fd, sockaddr(to, wire.UDPPort)); err != nil {
		return netip.Addr{}, os.NewSyscallError("connect", err)
	}
	defer disconnect(s.fd)
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return netip.Addr{}, os.NewSyscallError("getsockname", err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr), nil
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap(), nil
	}
	return netip.Addr{}, errors.New("a socket of an unknown family")
}

func (s scout) close() error { return unix.Close(s.fd) }
