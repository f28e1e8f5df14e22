// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// network is the place where every contestant runs: a veth pair between two namespaces,
// and a core for each side.
type network struct {
	*veth.Pair
	clientCore, serverCore int
	dir                    string          // of the contestants' programs
	tmp                    string          // for sockets; removed at the end
	mtu                    int             // of both interfaces, in bytes
	syscalls               *syscallCounter // nil unless system calls are to be counted
}

func newNetwork(dir string, o veth.Options) (*network, error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	var cores []int
	for c := range len(all) * 64 {
		if all.IsSet(c) {
			cores = append(cores, c)
		}
	}
	if len(cores) < 2 {
		return nil, fmt.Errorf("this process may run on %d core: the benchmark wants 2, one for each side", len(cores))
	}
	tmp, err := os.MkdirTemp("", "xdpfab-bench-")
	if err != nil {
		return nil, err
	}
	pair, err := veth.New(o)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	return &network{Pair: pair, clientCore: cores[0], serverCore: cores[len(cores)-1], dir: dir, tmp: tmp,
		mtu: o.MTU}, nil
}

func (n *network) Close() error { return errors.Join(n.Pair.Close(), os.RemoveAll(n.tmp)) }

// setMTU changes the MTU of both interfaces, which no process may be using.
func (n *network) setMTU(mtu int) error {
	if mtu == n.mtu {
		return nil
	}
	for _, side := range []*veth.Side{n.A, n.B} {
		h, err := netlink.NewHandleAt(side.NS, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		link, err := h.LinkByName(side.IfName)
		if err == nil {
			err = h.LinkSetMTU(link, mtu)
		}
		h.Close()
		if err != nil {
			return fmt.Errorf("%s of %s: %w", side.IfName, side.Name, err)
		}
	}
	n.mtu = mtu
	return nil
}

// spawn starts a command in a side's namespace, all of it on one core, and with the
// priority of contestants.
func spawn(side *veth.Side, core int, c *exec.Cmd) error {
	return side.Do(func() error {
		var before, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			return err
		}
		one.Set(core)
		// The child inherits the core from this thread, which then gets its own cores
		// back.
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return fmt.Errorf("pinning to core %d: %w", core, err)
		}
		restore := raise()
		err := c.Start()
		restore()
		if back := unix.SchedSetaffinity(0, &before); err == nil {
			err = back
		}
		return err
	})
}
