// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// A name in the short set that no test has any more would leave out, or let in, nothing.
func TestShortSetNamesTests(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	for _, c := range slices.Concat(ShortSet, NICSet) {
		files, err := filepath.Glob(filepath.Join(root, c.Dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files with tests, %v", c.Dir, len(files), err)
		}
		var names []string
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllSubmatch(text, -1) {
				names = append(names, string(m[1]))
			}
		}
		for _, wanted := range append(c.Only, c.Except...) {
			if !matches(wanted, names) {
				t.Errorf("%s has no test %s", c.Dir, wanted)
			}
		}
	}
}

func matches(expression string, names []string) bool {
	e := regexp.MustCompile(whole([]string{expression}))
	for _, n := range names {
		if e.MatchString(n) {
			return true
		}
	}
	return false
}

func TestArgsOf(t *testing.T) {
	for dir, want := range map[string][]string{
		"all":  {"-test.short=true"},
		"some": {"-test.short=true", "-test.run=^(TestA|TestB.*)$", "-test.skip=^(TestBad|TestBox)$"},
	} {
		set := []Choice{{Dir: "all"}, {Dir: "some", Only: []string{"TestA", "TestB.*"}, Except: []string{"TestBad", "TestBox"}}}
		if got := ArgsOf(set, dir); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
