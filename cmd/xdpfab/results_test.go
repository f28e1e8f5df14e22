// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// An operation that ran, and whose result cannot be printed, has an exit code of its own:
// 1 means that it never ran, and a script would run it anew.
func TestFullStdout(t *testing.T) {
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(file, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := `{"op":"sum","dt":"uint64","n":1,"buf":"0100000000000000"}` + "\n"
	for _, c := range []struct {
		line, in string
		code     int
		say      string
	}{
		{"atomic sum uint64 1 --peer PEER --region r", "", exitUnknown, "the operation ran; its result could not be printed"},
		{"atomic sum uint64 1 --peer PEER --region r --json", "", exitUnknown, "ran; its result could not be printed"},
		{"atomic --batch - --peer PEER --region r", batch, exitUnknown, "ran; its result could not be printed"},
		{"put PEER " + file + " --region r --offset 64", "", exitUnknown, "ran; its result could not be printed"},
		{"atomic read uint64 --peer PEER --region r", "", exitFailed, "no space left on device"},
		{"get PEER - --region r", "", exitFailed, "no space left on device"},
		{"list PEER", "", exitFailed, "no space left on device"},
	} {
		r := n.runFull(c.in, n.line(c.line)...)
		checkRefusal(t, c.line, r, c.code, c.say)
		if got := strings.Count(r.err, "no space left on device"); got != 1 {
			t.Errorf("%s: %q names the cause %d times", c.line, r.err, got)
		}
	}
	testnet.Eventually(t, "three sums ran", func() bool {
		return binary.LittleEndian.Uint64(n.mem.Bytes()) == 3
	})
}
