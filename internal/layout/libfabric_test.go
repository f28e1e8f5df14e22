// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/libfabric.md tells the truth as far as it can be checked: what it names exists,
// what works has a name and a test, and what does not work has a reason. It has every
// name of libfabric that the package mentions.
func TestLibfabricTables(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "libfabric.md"))
	if err != nil {
		t.Fatal(err)
	}
	c := claims{names: map[string]bool{}, tests: map[string]int{}}
	for _, pkg := range public {
		lines, err := surfaceOf(filepath.Join("..", "..", pkg))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			c.names[filepath.Base(pkg)+"."+nameInSurface(l)] = true
		}
	}
	mentioned := map[string]bool{}
	sources(t, func(dir, path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range testFunction.FindAllSubmatch(src, -1) {
				c.tests[string(m[1])]++
				c.tests[testPackage(dir)+"."+string(m[1])]++
			}
		} else if dir == "xdpfab" || dir == "xdpfab/fi" {
			for _, name := range theirConstant.FindAllString(string(src), -1) {
				mentioned[name] = true
			}
		}
	})
	rows, wrong := c.check(string(page))
	for _, w := range wrong {
		t.Error(w)
	}
	if rows < 200 {
		t.Errorf("only %d rows", rows)
	}
	theirs := theirConstant.FindAllString(string(page), -1)
	for name := range mentioned {
		if !slices.Contains(theirs, name) {
			t.Errorf("package xdpfab mentions %s, which has no row", name)
		}
	}
}

var (
	testFunction  = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)
	theirConstant = regexp.MustCompile(`\bFI_[A-Z0-9_]*[A-Z0-9]\b`)
	quoted        = regexp.MustCompile("`([^`]*)`")
	surfaceName   = regexp.MustCompile(`^(?:const|var|func|type|field|method) (?:\(\*?(\w+)[^)]*\) )?([\w.]+)`)
)

// testPackage is what the tables call the package in a folder.
func testPackage(dir string) string {
	if strings.HasPrefix(dir, "cmd/") { // a program has its name from a package
		return dir
	}
	return filepath.Base(dir)
}

// nameInSurface is the name that a line of the surface is about, of a method with its
// type.
func nameInSurface(line string) string {
	m := surfaceName.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	if m[1] != "" {
		return m[1] + "." + m[2]
	}
	return m[2]
}

// claims checks what the tables claim against the names and tests that there are.
type claims struct {
	names map[string]bool // with the package
	tests map[string]int  // how many have the name, with the package and without
}

// check returns the number of rows and what is wrong with them.
func (c claims) check(page string) (rows int, wrong []string) {
	seen := map[string]string{}
	chapter, section := "", ""
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if title, is := strings.CutPrefix(line, "## "); is {
			chapter = title
		}
		if title, is := strings.CutPrefix(line, "### "); is {
			section = chapter + ", " + title
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| libfabric |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 4 || cells[0] == "" {
			wrong = append(wrong, fmt.Sprintf("%q: want four cells, the first with the name", line))
			continue
		}
		if key := section + cells[0]; seen[key] != "" {
			wrong = append(wrong, fmt.Sprintf("%q stands twice in %q", cells[0], section))
		} else {
			seen[key] = line
		}
		for _, w := range c.row(cells[1], cells[2], cells[3]) {
			wrong = append(wrong, fmt.Sprintf("%s: %s", cells[0], w))
		}
	}
	return rows, wrong
}

// row checks the names, tests and status of one row.
func (c claims) row(names, tests, status string) (wrong []string) {
	for _, m := range quoted.FindAllStringSubmatch(names, -1) {
		if !c.names[m[1]] && !c.names["xdpfab."+m[1]] && !c.names["fi."+m[1]] {
			wrong = append(wrong, fmt.Sprintf("no package exports %s", m[1]))
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(tests, -1) {
		switch n := c.tests[m[1]]; {
		case n == 0:
			wrong = append(wrong, fmt.Sprintf("there is no test %s", m[1]))
		case n > 1:
			wrong = append(wrong, fmt.Sprintf("%d tests are named %s: want the package in front", n, m[1]))
		}
	}
	kind, reason, _ := strings.Cut(status, ":")
	kind, _, _ = strings.Cut(kind, ",")
	switch reason = strings.TrimSpace(reason); kind {
	case "works", "partly":
		if !quoted.MatchString(names) || !quoted.MatchString(tests) {
			wrong = append(wrong, kind+": want a Go name and a test")
		}
		if kind == "partly" && reason == "" {
			wrong = append(wrong, "partly: want what is missing")
		}
	case "refused", "not needed":
		if reason == "" {
			wrong = append(wrong, kind+": want the reason")
		}
	case "not yet":
		if reason == "" && quoted.MatchString(names) && !quoted.MatchString(tests) {
			wrong = append(wrong, "not yet: want a test that it is refused, or a reason")
		}
	default:
		wrong = append(wrong, fmt.Sprintf("status %q: want works, partly, refused, not needed or not yet", kind))
	}
	return wrong
}

// The check can fail.
func TestLibfabricTablesCanBeWrong(t *testing.T) {
	c := claims{names: map[string]bool{"xdpfab.A": true, "mr.B": true}, tests: map[string]int{"TestA": 1, "TestB": 2, "nic.TestB": 1}}
	const header = "| libfabric | Go | tests | status |\n|---|---|---|---|\n"
	for row, want := range map[string]string{
		"| fi_a | `A`, `mr.B` | `TestA` | works: a note |": "",
		"| fi_a | | | not yet |":                           "",
		"| fi_a | `A` | `TestA` | refused: because |":      "",
		"| fi_a | `C` | `TestA` | works |":                 "exports C",
		"| fi_a | `A` | `TestC` | works |":                 "no test TestC",
		"| fi_a | `A` | `TestB` | works |":                 "2 tests are named TestB",
		"| fi_a | `A` | `nic.TestB` | works |":             "",
		"| fi_a | `A` | | works |":                         "want a Go name and a test",
		"| fi_a | | `TestA` | works |":                     "want a Go name and a test",
		"| fi_a | `A` | `TestA` | partly |":                "want what is missing",
		"| fi_a | `A` | `TestA` | refused |":               "want the reason",
		"| fi_a | `A` | | not yet |":                       "want a test",
		"| fi_a | `A` | `TestA` | fine |":                  "status",
		"| fi_a | `A` | works |":                           "four cells",
		"| fi_a | | | not yet |\n| fi_a | | | not yet |":   "twice",
	} {
		_, wrong := c.check(header + row + "\n")
		if got := strings.Join(wrong, "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
	for line, want := range map[string]string{
		"method (*Region) Int32(i int) (*atomic.Int32, error)": "Region.Int32", "func Word[T Number](x int) T": "Word",
		"method (Remote[T]) Add(ctx context.Context, delta T) (new T, err error)": "Remote.Add", "field Info.Caps Caps `json:\"caps\"`": "Info.Caps",
		"const A B = 1": "A", "type C struct": "C", "type Datatype = atomic.Datatype": "Datatype",
	} {
		if got := nameInSurface(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
