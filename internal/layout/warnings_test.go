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
// docs/troubleshooting.md has each message of the daemon and of the library.
func TestWarningsAreExplained(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "## Warnings of the log\n")
	table, _, _ = strings.Cut(table, "\n## ")
	found := 0
	sources(t, func(dir, path string, src []byte) {
		logs := func(folder string) bool { return strings.HasPrefix(dir+"/", folder) }
		if strings.HasSuffix(path, "_test.go") || !logs("cmd/xdpfabd/") && !logs("internal/") && !logs("xdpfab/") {
			return
		}
		for _, text := range warnings(t, path, src) {
			found++
			// A text that ends with a space goes on with what is found at run time.
			if !strings.Contains(table, "\n| `"+text+"` |") && !strings.Contains(table, "\n| `"+text+"…` |") {
				t.Errorf("%s: docs/troubleshooting.md, Warnings of the log, lacks %q", path, text)
			}
		}
	})
	if found < 45 {
		t.Errorf("only %d messages were found", found)
	}
}

// warnings returns the messages that a file logs at level warn or error: the first
// argument of Warn and Error, and what follows such a level in a call or a literal. It
// knows the constants of the file itself.
func warnings(t *testing.T, path string, src []byte) (texts []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	add := func(e ast.Expr) {
		text := literal(e)
		if name, is := e.(*ast.Ident); is {
			text = named[name.Name]
		}
		if strings.Contains(text, " ") {
			texts = append(texts, text)
		}
	}
	follow := func(all []ast.Expr) {
		for i, e := range all {
			level, is := e.(*ast.SelectorExpr)
			if is && (level.Sel.Name == "LevelWarn" || level.Sel.Name == "LevelError") && i+1 < len(all) {
				add(all[i+1])
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
				add(x.Args[0])
			}
			follow(x.Args)
		case *ast.CompositeLit:
			follow(x.Elts)
		}
		return true
	})
	return texts
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
	want := []string{"it fails", "it ends", "it was: ", "it broke"}
	if got := warnings(t, "p.go", []byte(src)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
