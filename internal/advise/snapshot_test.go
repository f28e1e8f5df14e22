// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"path"
	"strings"
	"testing"
)

// A file that cannot be read turns a verdict into unknown, which names the
// file, and never into another verdict.
func TestUnreadable(t *testing.T) {
	before := Check(tuned().take())
	for p := range tuned().files {
		s := tuned()
		s.set(p, "EACCES")
		noticed := false
		for i, f := range Check(s.take()) {
			switch {
			case f.Verdict == Unknown && strings.Contains(f.Reason, "/"+p) && strings.Contains(f.Reason, "permission"):
				noticed = true
			case f.Verdict != before[i].Verdict:
				t.Errorf("without %s: %+v", p, f)
			}
		}
		if !noticed && !mayBeSilent(p) {
			t.Errorf("nobody noticed that %s could not be read", p)
		}
	}
}

// mayBeSilent lists the files that the verdicts of the tuned server do not
// depend on: one process among others, files whose names are enough, other
// nodes, other cores.
func mayBeSilent(p string) bool {
	for _, pattern := range []string{
		"proc/[0-9]*/comm", "sys/class/net/eth5/device/msi_irqs/*", "sys/kernel/mm/transparent_hugepage/enabled",
		cpu + "cpu*/topology/*", cpu + "vulnerabilities/spectre_v2", "sys/devices/system/node/node1/cpulist",
	} {
		if ok, _ := path.Match(pattern, p); ok {
			return true
		}
	}
	return false
}
