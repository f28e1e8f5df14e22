// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// loopback is a network namespace with nothing but a loopback interface.
var loopback struct {
	once   sync.Once
	handle netns.NsHandle
	err    error
	taken  atomic.Uint32
}

// loopbackMTU is that of Ethernet, and of xdpfab.Pipe, bytes.
const loopbackMTU = 1500

// OnLoopback runs f on a thread that is in a network namespace with nothing but a
// loopback interface, which all calls of the process share. A process that may not make
// one is left where it is.
func OnLoopback(f func() error) error {
	loopback.once.Do(func() {
		loopback.err = veth.OnThread(func() (err error) {
			loopback.handle = netns.None()
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return nil // no privilege
			}
			if loopback.handle, err = netns.Get(); err != nil {
				return err
			}
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			return errors.Join(netlink.LinkSetMTU(lo, loopbackMTU), netlink.LinkSetUp(lo))
		})
	})
	switch {
	case loopback.err != nil:
		return fmt.Errorf("testnet: a namespace with a loopback interface: %w", loopback.err)
	case !loopback.handle.IsOpen():
		return f()
	}
	return veth.OnThread(func() error {
		if err := netns.Set(loopback.handle); err != nil {
			return err
		}
		return f()
	})
}

// LoopbackAddr returns an address of the loopback interface, another one each time.
func LoopbackAddr() netip.Addr {
	n := loopback.taken.Add(1)
	return netip.AddrFrom4([4]byte{127, 64 | byte(n>>16&63), byte(n >> 8), byte(n)})
}
