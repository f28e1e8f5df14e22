// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tables of docs/internals/guarantees.md name tests that exist, in the package that
// stands in front of them.
func TestGuaranteesNameTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "internals", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{} // packages, and tests and files with theirs
	sources(t, func(dir, path string, src []byte) {
		there[dir], there[path] = true, true
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range testFunction.FindAllSubmatch(src, -1) {
				there[dir+"/"+string(m[1])] = true
			}
		}
	})
	named, wrong := namedTests(string(page), there)
	for _, w := range wrong {
		t.Error(w)
	}
	if named < 150 {
		t.Errorf("only %d tests are named", named)
	}
}

var inTable = regexp.MustCompile("`([^`]*)`|\\b((?:Test|Fuzz)[A-Z]\\w*|\\w+_test\\.go)\\b")

// namedTests counts the tests that the tables of a page name, and says which do not
// exist.
func namedTests(page string, there map[string]bool) (named int, wrong []string) {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		pkg := ""
		for _, m := range inTable.FindAllStringSubmatch(line, -1) {
			if m[2] == "" {
				if there[m[1]] {
					pkg = m[1]
				}
				continue
			}
			if named++; !there[pkg+"/"+m[2]] {
				wrong = append(wrong, fmt.Sprintf("%s: package %q has no such test or file", m[2], pkg))
			}
		}
	}
	return named, wrong
}

// The check can fail.
func TestGuaranteesCanBeWrong(t *testing.T) {
	there := map[string]bool{"a": true, "a/TestA": true, "a/x_test.go": true, "b": true, "b/TestB": true}
	for line, want := range map[string]int{
		"| p | `a` TestA, x_test.go; `b` TestB |\n": 0, "| p | `a` TestA, TestB |\n": 1, "| p | TestA |\n": 1,
		"| p | `b` x_test.go |\n": 1, "of `a` TestB\n": 0, "| p | `go test -run TestC` |\n": 0,
	} {
		if _, wrong := namedTests(line, there); len(wrong) != want {
			t.Errorf("%q: %q, want %d", line, wrong, want)
		}
	}
}
