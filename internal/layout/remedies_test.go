// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An error that says what to do ends there. The text of its kind behind that, such
// as "closed" or "not implemented", would contradict it or repeat it; errno.Refuse leaves
// the text out.
func TestRemedyIsLast(t *testing.T) {
	checked := 0
	sources(t, func(dir, path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") || !slices.Contains(append(public, "internal/calls"), dir) {
			return
		}
		checked++
		for _, at := range buriedRemedies(t, path, src) {
			t.Errorf("%s: the text of a sentinel follows the remedy: use errno.Refuse", at)
		}
	})
	if checked < 200 {
		t.Errorf("only %d files were read", checked)
	}
}

// remedy finds the clause of a text that says what is to be done.
var remedy = regexp.MustCompile(`(?:: |, |; |so )(?:want|make|find|take|send|post|bind|close|use|give|ask|clear|` +
	`wait|add|leave|put|compare|choose|look|correct|start) `)

// buriedRemedies returns the places of the errors that wrap a sentinel behind a remedy.
func buriedRemedies(t *testing.T, path string, src []byte) (at []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is || len(call.Args) < 2 {
			return true
		}
		f, is := call.Fun.(*ast.SelectorExpr)
		if !is || f.Sel.Name != "Errorf" {
			return true
		}
		text := strings.TrimPrefix(literal(call.Args[0]), "xdpfab: ")
		if strings.HasSuffix(text, ": %w") && remedy.MatchString(text) && sentinel(call.Args[len(call.Args)-1]) {
			at = append(at, set.Position(call.Pos()).String())
		}
		return true
	})
	return at
}

// literal returns the text of a literal, or of several that are added.
func literal(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(x.Value)
		return s
	case *ast.BinaryExpr:
		return literal(x.X) + literal(x.Y)
	}
	return ""
}

// sentinel reports whether an expression is the name of an exported error.
func sentinel(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return strings.HasPrefix(x.Name, "Err")
	case *ast.SelectorExpr:
		of, is := x.X.(*ast.Ident)
		return strings.HasPrefix(x.Sel.Name, "Err") || is && of.Name == "errno"
	}
	return false
}

// A remedy with a sentinel behind it is found, one at the end is not.
func TestBuriedRemediesAreFound(t *testing.T) {
	src := `package p
var (
	a = fmt.Errorf("xdpfab: %d words: "+"want 1: %w", n, ErrCount)
	b = fmt.Errorf("xdpfab: name of %d bytes: want 1: %w", n, errno.Length)
	c = errno.Refuse(ErrCount, "xdpfab: %d words: want 1", n)
	d = fmt.Errorf("xdpfab: want 1: %w", err)
	e = fmt.Errorf("xdpfab: word %d of %d: %w", i, n, ErrOutOfBounds)
)`
	if at := buriedRemedies(t, "p.go", []byte(src)); !slices.Equal(at, []string{"p.go:3:6", "p.go:4:6"}) {
		t.Errorf("%q", at)
	}
}
