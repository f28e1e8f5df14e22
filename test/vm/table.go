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

// Table gathers which packages passed and which features work with which kernel. Each
// kernel owes a verdict on each package, and on each feature that it began to test.
type Table struct {
	Packages []string // import paths of those to test

	kernels  []string
	features []string
	cells    map[[2]string]*cell          // by kernel and feature
	verdicts map[string]map[string]string // "pass" or "fail", by kernel and package
	broken   map[string]error
	ran      map[string]bool // kernels with which any test began
}

// cell is the verdict on a feature.
type cell struct {
	verdict string
	output  strings.Builder
}

// Add takes an event of a kernel's run.
func (t *Table) Add(kernel string, e Event) {
	verdicts := t.Column(kernel)
	if e.Test == "" {
		if e.Action == "pass" || e.Action == "fail" {
			verdicts[e.Package] = e.Action
		}
		return
	}
	t.ran[kernel] = t.ran[kernel] || e.Action == "run"
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

// Column adds a kernel's column, to the right of the others, and returns its verdicts on
// packages. So does its first event.
func (t *Table) Column(kernel string) map[string]string {
	if t.verdicts == nil {
		t.verdicts, t.cells = map[string]map[string]string{}, map[[2]string]*cell{}
		t.broken, t.ran = map[string]error{}, map[string]bool{}
	}
	if t.verdicts[kernel] == nil {
		t.kernels = append(t.kernels, kernel)
		t.verdicts[kernel] = map[string]string{}
	}
	return t.verdicts[kernel]
}

// Broken records that a kernel could not be tested, or not to the end.
func (t *Table) Broken(kernel string, err error) {
	t.Column(kernel)
	t.broken[kernel] = err
}

// passed counts the packages that passed with a kernel.
func (t *Table) passed(kernel string) (n int) {
	for _, p := range t.Packages {
		if t.verdicts[kernel][p] == "pass" {
			n++
		}
	}
	return n
}

// Empty reports whether there is no verdict on any package.
func (t *Table) Empty() bool {
	return !slices.ContainsFunc(t.kernels, func(k string) bool { return len(t.verdicts[k]) > 0 })
}

// Problems are what failed, what has no verdict, and what was not run. Packages whose
// tests were all filtered out have passed, unless there is none with a test.
func (t *Table) Problems() (all []string) {
	for _, k := range t.kernels {
		for _, p := range t.Packages {
			switch t.verdicts[k][p] {
			case "pass":
			case "fail":
				all = append(all, fmt.Sprintf("failed: %s: %s", k, p))
			default:
				all = append(all, fmt.Sprintf("not run: %s: %s", k, p))
			}
		}
		for _, f := range t.features {
			if c := t.cells[[2]string{k, f}]; c != nil && (c.verdict == "" || c.verdict == "fail") {
				all = append(all, fmt.Sprintf("%s: %s: feature %s", words[c.verdict], k, f))
			}
		}
		if !t.ran[k] && t.passed(k) > 0 {
			all = append(all, fmt.Sprintf("no test ran: %s: is there one that -run names?", k))
		}
		if err := t.broken[k]; err != nil {
			line, _, _ := strings.Cut(err.Error(), "\n")
			all = append(all, fmt.Sprintf("not tested to the end: %s: %s", k, line))
		}
	}
	return all
}

// words are the words of the table for the verdicts.
var words = map[string]string{"pass": "passed", "fail": "FAILED", "skip": "skipped", "": "no verdict"}

// Print writes the table, and below it why features were skipped, and the problems.
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
		fmt.Fprintf(tw, "\t%d of %d", t.passed(k), len(t.Packages))
	}
	fmt.Fprintln(tw)
	_ = tw.Flush()
	for _, n := range notes {
		fmt.Fprintln(w, "skipped:", n)
	}
	for _, p := range t.Problems() {
		fmt.Fprintln(w, p)
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
