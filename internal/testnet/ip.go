// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"os/exec"
	"strings"
	"testing"
)

// IP runs ip(8) commands, without options, in a side's namespace and returns what they
// print. One process runs them all: to start it takes longer than what it does. The
// test fails at the first command that fails.
func IP(t testing.TB, side *Side, commands ...string) string {
	t.Helper()
	cmd := exec.Command("ip", "-n", side.Name, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(commands, "; "), err, out)
	}
	return string(out)
}
