// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// door is how the facade reaches the objects of libfabric: other programs cannot name its
// result.
const door = "xdpfab/fi.Domain.Calls"

// Users cannot name the types of internal packages: none is in what a public package
// exports.
func TestSurfaceHasNoInternalTypes(t *testing.T) {
	public := map[string]bool{}
	sources(t, func(dir, path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") || slices.Contains([]string{"internal", "cmd", "bench", "test"}, strings.Split(dir, "/")[0]) {
			return
		}
		public[dir] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
		if err != nil {
			t.Error(err)
			return
		}
		for _, leak := range leaks(file) {
			if name, _, _ := strings.Cut(leak, " "); dir+"."+name == door {
				continue
			}
			t.Errorf("%s: %s", path, leak)
		}
	})
	if len(public) < 5 {
		t.Errorf("only %d public packages looked at", len(public))
	}
}

// leaks names the exported functions, methods, types, fields and variables of a file in
// whose types an internal package is mentioned.
func leaks(file *ast.File) (list []string) {
	internal := map[string]bool{}
	for _, i := range file.Imports {
		if p, _ := strconv.Unquote(i.Path.Value); strings.Contains(p, "/internal/") {
			internal[path.Base(p)] = true
		}
	}
	look := func(name string, in ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				n.Fields.List = slices.DeleteFunc(n.Fields.List, unseen)
			case *ast.InterfaceType:
				n.Methods.List = slices.DeleteFunc(n.Methods.List, unseen)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && internal[x.Name] {
					list = append(list, name+" has "+x.Name+"."+n.Sel.Name)
				}
			}
			return true
		})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name, exported := nameOf(d); exported {
				look(name, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						look(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					if s.Type != nil && slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
						look(s.Names[0].Name, s.Type)
					}
				}
			}
		}
	}
	return list
}

// unseen reports whether a field or method has names, and none is exported.
func unseen(f *ast.Field) bool {
	return len(f.Names) > 0 && !slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
}

// The check can fail: it tells what is seen from what is not.
func TestLeaksAreFound(t *testing.T) {
	const src = `package p
import "m/internal/engine"
import "m/mr"
type A struct { B engine.B; c engine.C; engine.D; E mr.E }
type f struct { G engine.G }
type H = engine.H
type I interface { J(k engine.K); l(engine.L) }
func (a *A) M(n int) engine.N { return engine.Not() }
func (x f) O(engine.O) {}
func P(q *engine.Q) {}
func r(engine.R) {}
var S engine.S
var t engine.T
var U error = engine.Not
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"A has engine.B", "A has engine.D", "H has engine.H", "I has engine.K", "A.M has engine.N", "P has engine.Q", "S has engine.S"}
	if got := leaks(file); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
