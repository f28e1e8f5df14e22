// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A command that only reads, and gets no answer, has no outcome that could be unknown: it
// ends as any other command does whose peer is silent.
func TestReadsUnanswered(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	far := serve(t, net.B, "--region", "r=64MiB")
	host(t, net.A)
	out, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var reads []*process
	for _, line := range []string{
		"watch P --interval 10ms", "watch P --interval 10ms --json", "bench P --op get --duration 1h",
		"bench P --op read --duration 1h", "get P -",
	} {
		args := append(strings.Fields(strings.ReplaceAll(line, "P", far.addr())), "--region", "r", "-i", net.A.IfName,
			"--timeout", silence.String())
		var more []option
		if args[0] == "get" {
			more = []option{func(c *exec.Cmd) { c.Stdout = to }}
		}
		reads = append(reads, start(t, net.A, xdpfabPath, args, more...))
	}
	_ = to.Close()
	if _, err := io.CopyN(io.Discard, out, 3<<20); err != nil {
		t.Fatal(err)
	}
	for _, p := range reads[:2] {
		p.eventually("watching", func() bool { return p.out.String() != "" })
	}
	executed := far.counters()["requests_executed"]
	far.eventually("busy", func() bool { return far.counters()["requests_executed"] > executed+20_000 })
	far.kill()
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	for _, p := range reads {
		p.wants(4, "peer does not answer")
		if text := p.err.String(); strings.Contains(text, "outcome unknown") {
			t.Errorf("%s: %s", p.name, text)
		}
	}
}
