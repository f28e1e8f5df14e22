// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/histogram"
)

// busyPoll has the daemon run the driver, and tells what that changes, in one run. What
// is held back then is let in again by the next daemon, after kill -9, too.
func (p *nicPair) busyPoll(t *testing.T) {
	if p.nic.Copy != "zero-copy" {
		t.Skip("needs a driver that tells which NAPI polls a queue; of those that are tested the ones with zero-copy do")
	}
	remembered := strings.TrimSuffix(p.socket, ".sock") + ".napi"
	without := p.paced(t)
	p.end()
	if exists(remembered) {
		t.Errorf("%s is there without busy polling", remembered)
	}
	p.flags = append(p.flags, "--busy-poll", "20us")
	p.restart()
	if text, err := os.ReadFile(remembered); err != nil || !strings.Contains(string(text), `"gro_flush_timeout":50000`) {
		t.Errorf("what is remembered: %q, %v", text, err)
	}
	with := p.paced(t)
	p.sum(t, p.addr(), 1000)
	p.kill()
	if !exists(remembered) {
		t.Errorf("%s is gone with a daemon that was killed", remembered)
	}
	p.flags = p.flags[:len(p.flags)-2]
	p.restart()
	if exists(remembered) {
		t.Errorf("the next daemon has left %s", remembered)
	}
	p.sum(t, p.addr(), 1000)
	t.Logf("interrupts a thousand operations: %.0f, with busy polling %.0f; median %d ns, %d ns; %d and %d operations",
		without.interrupts, with.interrupts, without.median, with.median, without.ops, with.ops)
}

// pace is what operations that follow each other take.
type pace struct {
	interrupts float64 // of all devices, for a thousand operations
	median     int64   // ns
	ops        uint64
}

func (p *nicPair) paced(t *testing.T) pace {
	t.Helper()
	before := interrupts(t)
	b := answer[struct {
		Verified bool
		Ops      uint64
		Latency  histogram.Percentiles
	}](t, p.net.A, append([]string{"bench", p.addr(), "-i", p.net.A.IfName, "--region", "other", "--mode", "latency",
		"--duration", "3s"}, p.extra...)...)
	if !b.Verified || b.Ops == 0 {
		t.Fatalf("bench: %+v, want a verified sum", b)
	}
	return pace{float64(interrupts(t)-before) / float64(b.Ops) * 1000, b.Latency.P50, b.Ops}
}

// msi matches a line of /proc/interrupts about a device's interrupt, with its counts by
// CPU.
var msi = regexp.MustCompile(`(?m)^ *\d+:((?: +\d+)+) +\S*MSI`)

// interrupts is how many interrupts all devices have made.
func interrupts(t *testing.T) (sum uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range msi.FindAllStringSubmatch(string(text), -1) {
		for _, count := range strings.Fields(m[1]) {
			n, _ := strconv.ParseUint(count, 10, 64)
			sum += n
		}
	}
	return sum
}
