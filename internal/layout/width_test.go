// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// commentWidth is the number of columns that a line of a comment may take. A tab counts
// as tabWidth of them.
const (
	commentWidth = 90
	codeWidth    = 120
	tabWidth     = 4
)

// commentLine matches a line that has only a comment, in Go or in C.
var commentLine = regexp.MustCompile(`^[ \t]*(//|/\*|\*( |$))`)

// mayBeWide matches the comments that cannot be wrapped: directives, code examples and
// drawings (indented), tables, and long words such as URLs.
var mayBeWide = regexp.MustCompile(`^(//[a-z]+:|(//|\*)(\t| {2,})|(//|\*) *\||.*\S{60})`)

// Comments are wrapped at one width. A comment behind code goes as wide as the code.
func TestCommentsAreWrapped(t *testing.T) {
	lines := 0
	check := func(_, path string, src []byte) {
		for i, line := range strings.Split(string(src), "\n") {
			if !commentLine.MatchString(line) {
				continue
			}
			lines++
			if n := columns(line); n > commentWidth && !mayBeWide.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%s:%d: the comment is %d columns wide: wrap it at %d", path, i+1, n, commentWidth)
			}
		}
	}
	sources(t, check)
	for _, pattern := range []string{"bpf/*.c", "bpf/headers/*.h"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			check("bpf", filepath.ToSlash(path), src)
		}
	}
	if lines < 3000 {
		t.Errorf("only %d lines of comments looked at", lines)
	}
}

// Code is wrapped at one width, too, so that two files fit side by side. Only raw strings
// may be wider: they cannot be broken.
func TestCodeIsWrapped(t *testing.T) {
	lines := 0
	sources(t, func(folder, path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_bpfel.go") {
			return
		}
		found, n := wideCode(t, path, src)
		lines += n
		for _, i := range found {
			t.Errorf("%s:%d: the line is wider than %d columns: break it at the outermost comma or operator", path, i, codeWidth)
		}
	})
	if lines < 30000 {
		t.Errorf("only %d lines of code looked at", lines)
	}
}

// wideCode returns the numbers of the lines of code that are too wide, and the number of
// lines.
func wideCode(t *testing.T, path string, src []byte) (found []int, lines int) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	raw := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(s.Value, "`") {
			for i := fset.Position(s.Pos()).Line; i <= fset.Position(s.End()).Line; i++ {
				raw[i] = true
			}
		}
		return true
	})
	for i, line := range strings.Split(string(src), "\n") {
		if lines++; columns(line) > codeWidth && !commentLine.MatchString(line) && !raw[i+1] {
			found = append(found, i+1)
		}
	}
	return found, lines
}

// The check can fail: it finds wide code, also behind a comment, and nothing else.
func TestWideCodeIsFound(t *testing.T) {
	long := strings.Repeat("x", codeWidth)
	src := "package p\n\nvar a = \"" + long + "\"\n\nvar b = `" + long + "\n" + long + "`\n\n// " + long +
		"\nvar c = 1 // " + long + "\n"
	if found, _ := wideCode(t, "p.go", []byte(src)); !slices.Equal(found, []int{3, 9}) {
		t.Errorf("found lines %d, want 3 and 9", found)
	}
}

// columns returns the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}

// The check can fail: it tells prose from what cannot be wrapped.
func TestWideCommentsAreFound(t *testing.T) {
	words := strings.Repeat("word ", 20)
	for line, wide := range map[string]bool{
		"// " + words:            true,
		"\t// " + words:          true,
		" * " + words:            true,
		"/* " + words:            true,
		"//go:generate " + words: false,
		"//\t" + words:           false,
		"//   " + words:          false,
		"// | " + words:          false,
		"// see https://" + strings.Repeat("x", 90): false,
		"x := 1 // " + words:                        false,
		"// a few words":                            false,
	} {
		found := commentLine.MatchString(line) && columns(line) > commentWidth &&
			!mayBeWide.MatchString(strings.TrimSpace(line))
		if found != wide {
			t.Errorf("%q: found to be too wide: %v, want %v", line, found, wide)
		}
	}
}
