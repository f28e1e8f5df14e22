// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// reserve binds a socket to the port of frames at each address that the XDP program
// serves, so that domains with UDP sockets are refused there: they would receive
// nothing. It shares the address with other interfaces in use, such as the one whose
// place this one takes (SO_REUSEADDR), and not with sockets of others. The caller holds
// serving.
//
// An address at which no socket can be bound for another reason stays without one until
// the next call: the kernel gives a new IPv6 address away only after a second.
func (i *Interface) reserve(addrs []netip.Addr) error {
	present := make(map[netip.Addr]bool, len(addrs))
	var taken error
	for _, a := range addrs {
		present[a] = true
		if _, held := i.reserved[a]; held || a.IsLinkLocalUnicast() {
			continue
		}
		switch fd, err := i.hold(a); {
		case err == nil:
			i.reserved[a] = fd
		case errors.Is(err, unix.EADDRINUSE):
			taken = fmt.Errorf("%s: %v, UDP port %d: %w, and this one would take their packets: end that "+
				"program, which may be an xdpfab with --transport udp, or open without UDP "+
				"(xdpfabd --udp=false, DomainAttr.EthernetOnly)", i.Name(), a, wire.UDPPort, ErrSockets)
		}
	}
	for a, fd := range i.reserved {
		if !present[a] {
			_ = unix.Close(fd)
			delete(i.reserved, a)
		}
	}
	return taken
}

// hold binds a socket that no thread reads, in the interface's network namespace.
func (i *Interface) hold(a netip.Addr) (fd int, err error) {
	err = i.netns.do(func() error {
		fd, err = bound(a)
		return err
	})
	return fd, err
}

func bound(a netip.Addr) (fd int, err error) {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: wire.UDPPort, Addr: a.As16()})
	if a.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: wire.UDPPort, Addr: a.As4()}
	}
	if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	for _, o := range [][2]int{{unix.SO_REUSEADDR, 1}, {unix.SO_RCVBUF, 0}} {
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], o[1]); err != nil {
			break
		}
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// unserved returns the error of an address that could not be reserved.
func (i *Interface) unserved() error {
	i.serving.Lock()
	defer i.serving.Unlock()
	return i.crowded
}

// release gives the addresses back.
func (i *Interface) release() {
	i.serving.Lock()
	defer i.serving.Unlock()
	for a, fd := range i.reserved {
		_ = unix.Close(fd)
		delete(i.reserved, a)
	}
}
