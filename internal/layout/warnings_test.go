// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whoever meets a warning or an error in the log can look it up: the table of
// docs/troubleshooting.md has each message of the daemon and of the library, and its
// level.
func TestWarningsAreExplained(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "## Warnings of the log\n")
	table, _, _ = strings.Cut(table, "\n## ")
	table = strings.ReplaceAll(table, "*", "") // the urgent levels are in bold type
	has := func(row string) bool { return strings.Contains(table, "\n| `"+row+" |") }
	found := 0
	sources(t, func(dir, path string, src []byte) {
		logs := func(folder string) bool { return strings.HasPrefix(dir+"/", folder) }
		if strings.HasSuffix(path, "_test.go") || !logs("cmd/xdpfabd/") && !logs("internal/") && !logs("xdpfab/") {
			return
		}
		for _, w := range warnings(t, path, src) {
			found++
			// A text that ends with a space goes on with what is found at run time.
			if !has(w.text+"` | "+w.level) && !has(w.text+"…` | "+w.level) {
				t.Errorf("%s: docs/troubleshooting.md, Warnings of the log, lacks %q of level %s", path, w.text, w.level)
			}
		}
	})
	if found < 45 {
		t.Errorf("only %d messages were found", found)
	}
}

// warning is a message of the log.
type warning struct{ level, text string }

// warnings returns the messages that a file logs at level warn or error: the first
// argument of Warn and Error, and what follows such a level in a call or a literal. It
// knows the constants of the file itself.
func warnings(t *testing.T, path string, src []byte) (all []warning) {
	file, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	add := func(level string, e ast.Expr) {
		text := literal(e)
		if name, is := e.(*ast.Ident); is {
			text = named[name.Name]
		}
		if strings.Contains(text, " ") {
			all = append(all, warning{strings.ToLower(strings.TrimPrefix(level, "Level")), text})
		}
	}
	follow := func(exprs []ast.Expr) {
		for i, e := range exprs {
			level, is := e.(*ast.SelectorExpr)
			if is && (level.Sel.Name == "LevelWarn" || level.Sel.Name == "LevelError") && i+1 < len(exprs) {
				add(level.Sel.Name, exprs[i+1])
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ValueSpec:
			for i, name := range x.Names {
				if i < len(x.Values) {
					named[name.Name] = literal(x.Values[i])
				}
			}
		case *ast.CallExpr:
			f, is := x.Fun.(*ast.SelectorExpr)
			if is && (f.Sel.Name == "Warn" || f.Sel.Name == "Error") && len(x.Args) > 0 {
				add(f.Sel.Name, x.Args[0])
			}
			follow(x.Args)
		case *ast.CompositeLit:
			follow(x.Elts)
		}
		return true
	})
	return all
}

// The forms in which a message stands in the code are found, and other levels are not.
func TestWarningsAreFound(t *testing.T) {
	src := `package p
const ends = "it " + "ends"
var levels = map[int]level{1: {slog.LevelWarn, "it " + "fails"}, 2: {slog.LevelInfo, "it works"}}
func f() {
	log.Warn(ends, "key", 1)
	log.Error("it was: " + why)
	log.Info("it goes on")
	n.Log(slog.LevelError, "it broke", slog.Any("cause", err))
	t.Error(err)
}`
	want := []warning{{"warn", "it fails"}, {"warn", "it ends"}, {"error", "it was: "}, {"error", "it broke"}}
	if got := warnings(t, "p.go", []byte(src)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
