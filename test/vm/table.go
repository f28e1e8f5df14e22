// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// features are the tests whose subtests are the features, by package.
var features = map[string]string{
	"github.com/xdpfab/xdpfab/test/vm/feature": "TestFeature/",
	"github.com/xdpfab/xdpfab/test/e2e":        "TestNIC/",
}

// Table gathers which features work with which kernel.
type Table struct {
	kernels  []string
	features []string
	cells    map[[2]string]*cell // by kernel and feature
	packages map[string]*tally
	broken   map[string]error
}

// cell is the verdict on a feature.
type cell struct {
	verdict string
	output  strings.Builder
}

// tally counts packages.
type tally struct {
	passed int
	failed []string
}

// Add takes an event of a kernel's run.
func (t *Table) Add(kernel string, e Event) {
	k := t.kernel(kernel)
	if e.Test == "" {
		switch e.Action {
		case "pass":
			k.passed++
		case "fail":
			k.failed = append(k.failed, e.Package)
		}
		return
	}
	test, ok := features[e.Package]
	name, is := strings.CutPrefix(e.Test, test)
	if !ok || !is || strings.Contains(name, "/") {
		return
	}
	if !slices.Contains(t.features, name) {
		t.features = append(t.features, name)
	}
	c := t.cells[[2]string{kernel, name}]
	if c == nil {
		c = &cell{}
		t.cells[[2]string{kernel, name}] = c
	}
	c.output.WriteString(e.Output)
	switch e.Action {
	case "pass", "fail", "skip":
		c.verdict = e.Action
	}
}

// Column adds a kernel's column, to the right of the others. So does its first event.
func (t *Table) Column(kernel string) { t.kernel(kernel) }

func (t *Table) kernel(name string) *tally {
	if t.packages == nil {
		t.packages, t.cells, t.broken = map[string]*tally{}, map[[2]string]*cell{}, map[string]error{}
	}
	if t.packages[name] == nil {
		t.kernels = append(t.kernels, name)
		t.packages[name] = &tally{}
	}
	return t.packages[name]
}

// Broken notes that a kernel could not be tested, or not to the end.
func (t *Table) Broken(kernel string, err error) {
	t.kernel(kernel)
	t.broken[kernel] = err
}

// Failed reports whether anything failed.
func (t *Table) Failed() bool {
	return len(t.broken) > 0 || slices.ContainsFunc(t.kernels, func(k string) bool { return len(t.packages[k].failed) > 0 })
}

// words are the words of the table for the verdicts.
var words = map[string]string{"pass": "passed", "fail": "FAILED", "skip": "skipped", "": "FAILED (no verdict)"}

// Print writes the table, and below it why features were skipped.
func (t *Table) Print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "feature\t%s\n", strings.Join(t.kernels, "\t"))
	var notes []string
	for _, f := range t.features {
		fmt.Fprint(tw, f)
		for _, k := range t.kernels {
			c := t.cells[[2]string{k, f}]
			if c == nil {
				fmt.Fprint(tw, "\tnot run")
				continue
			}
			fmt.Fprintf(tw, "\t%s", words[c.verdict])
			if c.verdict == "skip" {
				notes = append(notes, fmt.Sprintf("%s, %s: %s", k, f, reason(c.output.String())))
			}
		}
		fmt.Fprintln(tw)
	}
	fmt.Fprint(tw, "packages passed")
	for _, k := range t.kernels {
		p := t.packages[k]
		fmt.Fprintf(tw, "\t%d of %d", p.passed, p.passed+len(p.failed))
	}
	fmt.Fprintln(tw)
	_ = tw.Flush()
	for _, n := range notes {
		fmt.Fprintln(w, "skipped:", n)
	}
	for _, k := range t.kernels {
		for _, f := range t.packages[k].failed {
			fmt.Fprintf(w, "failed: %s: %s\n", k, f)
		}
		if err := t.broken[k]; err != nil {
			line, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(w, "not tested to the end: %s: %s\n", k, line)
		}
	}
}

// place matches the file and line that go test puts before a test's message.
var place = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

// reason returns the message of a skipped test.
func reason(output string) string {
	for line := range strings.Lines(output) {
		if at := place.FindStringIndex(line); at != nil {
			return strings.TrimSpace(line[at[1]:])
		}
	}
	return "without a reason"
}
