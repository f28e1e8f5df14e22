// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
)

// Arguments that stand where others belong, and what the command line should be.

// severalRegions refuses more than one word in the place of the description of a region,
// and says what the second one is for.
func severalRegions(c *cobra.Command, args []string) error {
	first, second := args[0], args[1]
	_, sized := show.ParseSize(second)
	switch {
	case !strings.Contains(first, "=") && sized == nil:
		return usage(c, "unexpected argument %q: the size stands behind a =: want %s=%s", second, first, second)
	case strings.Contains(second, "=") && !strings.HasPrefix(second, "backing="):
		return usage(c, "unexpected argument %q: want one region, and another command for the next one", second)
	case strings.Contains(first, "="):
		return usage(c, "unexpected argument %q: options stand behind a colon: want %s:%s", second, first, second)
	}
	return exactArgs("NAME=SIZE")(c, args)
}

// noInterface refuses an address in the place of an interface: one of this machine, or a
// peer's.
func noInterface(c *cobra.Command, addr string) error {
	list, _ := net.Interfaces() // without them it is a peer's
	for _, i := range list {
		own, _ := i.Addrs()
		if i.HardwareAddr.String() == addr || slices.ContainsFunc(own, func(a net.Addr) bool {
			return strings.HasPrefix(a.String(), addr+"/")
		}) {
			return usage(c, "%q is an address: want the interface that has it: `%s %s`", addr, c.CommandPath(), i.Name)
		}
	}
	return usage(c, "%q is an address: want an interface of this machine; `xdpfab diagnose %s` and `xdpfab list %s` "+
		"ask a peer", addr, addr, addr)
}

// withRegion is the command line of a command that lacks a region, with the name that
// stands behind the peer's address, as in scp, or with a placeholder.
func withRegion(c *cobra.Command) string {
	args := c.Flags().Args()
	if len(args) == 0 {
		return ""
	}
	peer, name, is := strings.Cut(args[0], ":")
	if is && isAddress(peer) && name != "" {
		return fmt.Sprintf(", as in %s --region %s", peer, name)
	}
	if peer := c.Flags().Lookup("peer"); peer != nil {
		args = append(args, "--peer", cmp.Or(peer.Value.String(), "PEER"))
	}
	return fmt.Sprintf(", as in `%s %s --region NAME`", c.CommandPath(), strings.Join(args, " "))
}

// forbidden reports whether this process may not run on a CPU.
func forbidden(cpu int) bool {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return false // opening the interface says it
	}
	return cpu < 0 || !set.IsSet(cpu)
}

// allowed lists the CPUs on which this process may run, as taskset does: 0-3,6.
func allowed() string {
	var parts []string
	const most = len(unix.CPUSet{}) * strconv.IntSize
	for cpu := 0; cpu < most; cpu++ {
		first := cpu
		for cpu < most && !forbidden(cpu) {
			cpu++
		}
		switch cpu - first {
		case 0:
		case 1:
			parts = append(parts, strconv.Itoa(first))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", first, cpu-1))
		}
	}
	return strings.Join(parts, ",")
}
