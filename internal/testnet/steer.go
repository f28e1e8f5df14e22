// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"strconv"
	"strings"
	"testing"
)

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
