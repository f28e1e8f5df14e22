// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/xdpfab/xdpfab/internal/advise"
	"github.com/xdpfab/xdpfab/internal/nic"
)

// The advice has one line for each check, as text and as JSON, whatever it finds.
func TestAdvise(t *testing.T) {
	n := newNode(t)
	var checks []string
	for _, f := range advise.Check(advise.Take(fstest.MapFS{}, nic.System{}, nil, nic.Settings{})) {
		checks = append(checks, f.Check)
	}
	r := n.run("", "info", "--advise", "lo")
	lines := strings.Split(r.out, "\n")
	for _, name := range checks {
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+" ") })
		if r.code != 0 || i < 0 || len(strings.Fields(lines[i])) < 3 {
			t.Errorf("info --advise lo: %d, no line of %s in\n%s%s", r.code, name, r.out, r.err)
		}
	}
	if !strings.Contains(r.out, "lo is not an Ethernet interface") || !strings.Contains(r.out, "docs/tuning.md") {
		t.Errorf("info --advise lo:\n%s", r.out)
	}

	r = n.run("", "info", "--advise", "--json")
	var got adviceReport
	d := json.NewDecoder(strings.NewReader(r.out))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil || r.code != 0 || got.Interface != "" || got.Kernel == "" {
		t.Fatalf("%v: %+v", err, r)
	}
	var names []string
	for _, f := range got.Checks {
		names = append(names, f.Check)
	}
	if !slices.Equal(names, checks) {
		t.Errorf("checks %v", names)
	}
	if i := got.Checks[0]; i.Verdict != advise.NotApplicable || i.Reason != "no interface was named" {
		t.Errorf("%+v", i)
	}

	r = n.run("", "info", "--advise")
	if strings.Contains(r.out, advise.Unnamed) || !strings.Contains(r.out, " checks more are of an interface: name one, as in `xdpfab info --advise eth0`") {
		t.Errorf("info --advise: %+v", r)
	}

	checkRefusal(t, "absent", n.run("", "info", "--advise", "absent0"), exitInterface, "no such interface")
	checkRefusal(t, "both", n.run("", "info", "--advise", "--operations"), exitUsage, "--advise, --fabric and --operations exclude each other: want one of them")
}
