// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// What package vm tells tests in a machine with two NICs that are joined to each other.
const (
	NICsEnv      = "XDPFAB_NICS"       // their names, separated by a space
	NICModesEnv  = "XDPFAB_NIC_MODES"  // the modes that xdpfab gets: "native zero-copy"
	NICQueuesEnv = "XDPFAB_NIC_QUEUES" // the most queues that they have
)

// NICs says what NewPair makes pairs of.
type NICs struct {
	names  [2]string
	XDP    string // "native" or "generic"
	Copy   string // "zero-copy" or "copy"
	Queues int    // the most that they have
}

// Borrowed returns the NICs that NewPair makes pairs of, or nil where it makes veths.
// NICs are taken in the virtual machines of package vm alone, never those of a host.
func Borrowed(t testing.TB) *NICs {
	t.Helper()
	names := strings.Fields(os.Getenv(NICsEnv))
	if len(names) == 0 {
		return nil
	}
	if !inVM() {
		t.Fatalf("%s is set outside of a virtual machine of package vm: unset it, or run make test-nic", NICsEnv)
	}
	n := &NICs{}
	var err error
	if n.Queues, err = strconv.Atoi(os.Getenv(NICQueuesEnv)); err != nil || len(names) != 2 {
		t.Fatalf("%s=%q, %s=%q: want two names and a number", NICsEnv, names, NICQueuesEnv, os.Getenv(NICQueuesEnv))
	}
	n.names = [2]string(names)
	n.XDP, n.Copy, _ = strings.Cut(os.Getenv(NICModesEnv), " ")
	return n
}

// inVM reports whether process 1 is that of package vm: its configuration is at a path
// where no distribution has a file, and it is the program of the initramfs.
func inVM() bool {
	exe, err := os.Readlink("/proc/1/exe")
	_, missing := os.Stat("/etc/vminit.json")
	return err == nil && exe == "/init" && missing == nil && os.Getenv(VMEnv) != ""
}

// borrow makes a pair of the NICs. It skips the test if they lack what the options ask
// for.
func (n *NICs) borrow(t testing.TB, o Options) *Pair {
	t.Helper()
	if o.Queues > n.Queues {
		t.Skipf("%d queues: these NICs have %d", o.Queues, n.Queues)
	}
	return build(t, func() (*Pair, error) { return veth.Borrow(n.names, o) })
}
