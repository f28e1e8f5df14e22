// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var release = flag.Bool("release", false, "write the surface down as that of the first version of CHANGELOG.md")

// Between releases the surface of the public packages may grow. api/released has the
// surface of the last release and its version. A line that is missing since then is a
// break: it takes a higher minor version, and an entry under "### Breaking" of
// CHANGELOG.md. Before the first release there is no such folder, and no break.
func TestBreaks(t *testing.T) {
	api := filepath.Join("..", "..", "api")
	released := filepath.Join(api, "released")
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := firstSection(string(text))
	if *release {
		if err := writeRelease(api, released, section.version); err != nil {
			t.Fatal(err)
		}
	}
	last, err := os.ReadFile(filepath.Join(released, "VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("nothing is released yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	old, err := surfaceIn(released)
	if err != nil {
		t.Fatal(err)
	}
	now, err := surfaceIn(api)
	if err != nil {
		t.Fatal(err)
	}
	if len(old) == 0 {
		t.Error("api/released has no surface")
	}
	for _, w := range section.forgives(strings.TrimSpace(string(last)), breaks(old, now)) {
		t.Error(w)
	}
}

// surfaceIn returns the lines of all files in a folder of surfaces, with their packages.
func surfaceIn(dir string) (lines []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			lines = append(lines, strings.TrimSuffix(filepath.Base(file), ".txt")+": "+strings.TrimSpace(line))
		}
	}
	return lines, err
}

// writeRelease copies the surface, and writes its version down.
func writeRelease(api, released, version string) error {
	files, err := filepath.Glob(filepath.Join(api, "*.txt"))
	if err != nil || version == "" {
		return fmt.Errorf("the first section of CHANGELOG.md has no version, want \"## 1.2.3\" (%v)", err)
	}
	if err := errors.Join(os.RemoveAll(released), os.MkdirAll(released, 0o755)); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(released, filepath.Base(file)), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(released, "VERSION"), []byte(version+"\n"), 0o644)
}

const unexported = " has unexported ones"

// breaks lists what users of the old surface would miss in the new one: lines that have
// gone or changed, and structures that had exported fields only.
func breaks(old, now []string) (found []string) {
	for _, l := range old {
		if !slices.Contains(now, l) && !strings.HasSuffix(l, unexported) {
			found = append(found, l)
		}
	}
	for _, l := range now {
		if strings.HasSuffix(l, unexported) && !slices.Contains(old, l) {
			typ := strings.TrimSuffix(strings.Replace(l, ": field ", ": type ", 1), unexported) + " struct"
			if slices.Contains(old, typ) {
				found = append(found, l)
			}
		}
	}
	return found
}

// changes are a section of the changelog.
type changes struct {
	version  string // empty for a section without one
	breaking string // the text under "### Breaking"
}

var (
	sectionHead = regexp.MustCompile(`(?m)^## +(\d+\.\d+\.\d+)?`)
	breakingOf  = regexp.MustCompile(`(?ms)^### Breaking\n(.*?)(^#|\z)`)
)

// firstSection reads the section of the next release.
func firstSection(changelog string) (c changes) {
	heads := sectionHead.FindAllStringSubmatchIndex(changelog, 2)
	if len(heads) == 0 {
		return c
	}
	if heads[0][2] >= 0 {
		c.version = changelog[heads[0][2]:heads[0][3]]
	}
	body := changelog[heads[0][1]:]
	if len(heads) > 1 {
		body = changelog[heads[0][1]:heads[1][0]]
	}
	if m := breakingOf.FindStringSubmatch(body); m != nil {
		c.breaking = m[1]
	}
	return c
}

// forgives reports which breaks since the last version the section does not allow.
func (c changes) forgives(last string, broken []string) (wrong []string) {
	var was, is [3]int
	fmt.Sscanf(last, "%d.%d.%d", &was[0], &was[1], &was[2])
	fmt.Sscanf(c.version, "%d.%d.%d", &is[0], &is[1], &is[2])
	if len(broken) > 0 && (is[0] < was[0] || is[0] == was[0] && (was[0] > 0 || is[1] <= was[1])) {
		want := fmt.Sprintf("0.%d.0", was[1]+1)
		if was[0] > 0 {
			want = fmt.Sprintf("%d.0.0", was[0]+1)
		}
		wrong = append(wrong, fmt.Sprintf("the surface of %s is broken: want \"## %s\" as the first section of CHANGELOG.md, not %q",
			last, want, c.version))
	}
	for _, line := range broken {
		_, symbol, _ := strings.Cut(line, ": ")
		name := nameInSurface(symbol)
		if !strings.Contains(c.breaking, "`"+name+"`") {
			wrong = append(wrong, fmt.Sprintf("%s: gone or changed since %s: restore it, or name `%s` under \"### Breaking\" of the first section of CHANGELOG.md",
				line, last, name))
		}
	}
	return wrong
}

// The check tells additions from breaks, and forgives what the changelog names.
func TestBreaksAreFound(t *testing.T) {
	old := []string{"p: func F(int)", "p: type A struct", "p: field A.B int", "p: type I interface { J() }", "p: type C struct", "p: field C has unexported ones"}
	without := func(line string, more ...string) []string {
		return append(slices.DeleteFunc(slices.Clone(old), func(l string) bool { return l == line }), more...)
	}
	for _, c := range []struct {
		name   string
		now    []string
		broken int
	}{
		{"the same", old, 0},
		{"additions", without("", "p: func G()", "p: field A.D string", "q: type A struct"), 0},
		{"a new type with unexported fields", without("", "p: type D struct", "p: field D has unexported ones"), 0},
		{"a function is removed", without(old[0]), 1},
		{"its type changes", without(old[0], "p: func F(int, int)"), 1},
		{"a field is removed", without(old[2]), 1},
		{"an interface grows", without(old[3], "p: type I interface { J(); K() }"), 1},
		{"a structure gets unexported fields", without("", "p: field A has unexported ones"), 1},
		{"a structure loses its unexported fields", without(old[5]), 0},
	} {
		if found := breaks(old, c.now); len(found) != c.broken {
			t.Errorf("%s: %q, want %d", c.name, found, c.broken)
		}
	}

	broken := []string{"p: method (*T) M()"}
	for _, c := range []struct {
		last, changelog string
		wrong           int
	}{
		{"0.1.0", "# Changelog\n\n## 0.2.0\n\n### Breaking\n\n- `T.M` has gone.\n\n## 0.1.0\n", 0},
		{"0.1.0", "## 0.2.0\n\n- `T.M` has gone.\n", 1},
		{"0.1.0", "## 0.2.0\n\n### Added\n\n## 0.1.0\n\n### Breaking\n\n- `T.M`\n", 1},
		{"0.1.0", "## 0.1.1\n\n### Breaking\n\n- `T.M`\n", 1},
		{"0.1.0", "## Unreleased\n", 2},
		{"1.3.0", "## 1.4.0\n\n### Breaking\n\n- `T.M`\n", 1},
		{"1.3.0", "## 2.0.0\n\n### Breaking\n\n- `T.M`\n", 0},
	} {
		if wrong := firstSection(c.changelog).forgives(c.last, broken); len(wrong) != c.wrong {
			t.Errorf("%q after %s: %q, want %d", c.changelog, c.last, wrong, c.wrong)
		}
	}
	if wrong := firstSection("## 0.1.1\n").forgives("0.1.0", nil); len(wrong) != 0 {
		t.Errorf("without a break: %q", wrong)
	}
}
