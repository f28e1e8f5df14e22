// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// What package vm tells tests in a machine with two NICs that are joined to each other.
const (
	NICsEnv      = "XDPFAB_NICS"       // their names, separated by a space
	NICModesEnv  = "XDPFAB_NIC_MODES"  // the modes that xdpfab gets: "native zero-copy"
	NICQueuesEnv = "XDPFAB_NIC_QUEUES" // the most queues that they have
)

// NICs describes what NewPair makes pairs of.
type NICs struct {
	names  [2]string
	XDP    string // "native" or "generic", or Refused
	Copy   string // "zero-copy" or "copy"
	Queues int    // the most that they have
}

// Refused in place of an XDP mode means that the driver has native XDP, and refuses it in
// the settings of these NICs: generic XDP can be had only by force.
const Refused = "refused"

// Borrowed returns the NICs that NewPair makes pairs of, or nil where it makes veths.
// Package vm names those of its machines; whoever has two NICs to spare, joined by a
// cable, can name them as well, to run the tests on their driver. NICs that the machine
// uses are refused.
func Borrowed(t testing.TB) *NICs {
	t.Helper()
	names := strings.Fields(os.Getenv(NICsEnv))
	if len(names) == 0 {
		return nil
	}
	n := &NICs{}
	var err error
	if n.Queues, err = strconv.Atoi(os.Getenv(NICQueuesEnv)); err != nil || len(names) != 2 {
		t.Fatalf("%s=%q, %s=%q: want two names and a number", NICsEnv, names, NICQueuesEnv, os.Getenv(NICQueuesEnv))
	}
	n.names = [2]string(names)
	n.XDP, n.Copy, _ = strings.Cut(os.Getenv(NICModesEnv), " ")
	if n.XDP == "" || n.Copy == "" {
		t.Fatalf("%s=%q: want what `xdpfab info --probe %s` says, such as \"native zero-copy\"", NICModesEnv,
			os.Getenv(NICModesEnv), names[0])
	}
	return n
}

// Granted reports what xdpfab gets on the pairs of NewPair: on veths native XDP, copy,
// and any number of queues.
func Granted(t testing.TB) *NICs {
	t.Helper()
	if n := Borrowed(t); n != nil {
		return n
	}
	return &NICs{XDP: "native", Copy: "copy", Queues: math.MaxInt}
}

// SkipOnNICs skips a test that does not use NICs where some are given to be tested. The
// parameter uses says what it uses instead.
func SkipOnNICs(t testing.TB, uses string) {
	t.Helper()
	if Borrowed(t) != nil {
		t.Skipf("uses %s, and %s=%q asks for tests of these NICs", uses, NICsEnv, os.Getenv(NICsEnv))
	}
}

// borrow makes a pair of the NICs. It skips the test if they lack what the options ask
// for.
func (n *NICs) borrow(t testing.TB, o Options) *Pair {
	t.Helper()
	if o.Queues > n.Queues {
		t.Skipf("%d queues: these NICs have %d", o.Queues, n.Queues)
	}
	if o.Straight {
		t.Skip("NICs choose the queue that a frame arrives on")
	}
	name := t.Name()
	for !holder.CompareAndSwap(nil, &name) {
		if h := holder.Load(); h != nil && (name == *h || strings.HasPrefix(name, *h+"/")) {
			t.Skip(veth.ErrOnePair) // to wait for it would be to wait for ever
		}
		time.Sleep(10 * time.Millisecond) // a parallel test has them, and gives them back
	}
	t.Cleanup(func() { holder.Store(nil) }) // after the pair's own
	return build(t, func() (*Pair, error) { return veth.Borrow(n.names, o) })
}

// holder is the name of the test that has the NICs.
var holder atomic.Pointer[string]

// Running waits until a NIC of the pair carries traffic. Its driver takes the carrier
// away while it sets the queues up anew, for a program or a socket; a veth keeps its own.
func Running(t testing.TB, s *Side) {
	t.Helper()
	if Borrowed(t) == nil {
		return
	}
	if err := s.AwaitRunning(); err != nil {
		t.Fatal(err)
	}
}

// Steer has what arrives over IP put into one queue, until the test is over, and returns
// whether that can be had. On a veth the sender's queue decides, and nothing is changed.
// A NIC is told by its table of hashes, which raw Ethernet has no part in: its frames
// arrive on queue 0, as a rule. Some drivers have no such table.
func Steer(t testing.TB, s *Side, queue int) bool {
	t.Helper()
	if Borrowed(t) == nil {
		return true
	}
	table := func(to ...string) error {
		out, err := s.Command("ethtool", append([]string{"-X", s.IfName}, to...)...).CombinedOutput()
		switch {
		case err != nil && !strings.Contains(string(out), "not supported"):
			t.Fatalf("ethtool -X %s %q: %v: %s", s.IfName, to, err, out)
		case err != nil:
			t.Logf("this NIC cannot be told which queue to use: %s", out)
		}
		return err
	}
	if table("start", strconv.Itoa(queue), "equal", "1") != nil {
		return false
	}
	t.Cleanup(func() { _ = table("default") })
	return true
}
