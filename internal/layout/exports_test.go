// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Every exported name has a comment: a package is read by its documentation. Error and
// String, whose meaning is well known, need none; nor do fields.
func TestExportsAreDocumented(t *testing.T) {
	names := 0
	sources(t, func(_, path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		if file.Name.Name == "main" {
			return
		}
		for name, documented := range exports(file) {
			names++
			if !documented && !strings.HasSuffix(name, ".Error") && !strings.HasSuffix(name, ".String") {
				t.Errorf("%s: %s has no comment", path, name)
			}
		}
	})
	if names < 500 {
		t.Errorf("only %d exported names looked at", names)
	}
}

// exports reports which names of a file are exported, and whether each has a comment.
func exports(file *ast.File) map[string]bool {
	found := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name, exported := nameOf(d); exported {
				found[name] = d.Doc != nil
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				specExports(found, d.Doc != nil, s)
			}
		}
	}
	return found
}

// nameOf is a function's name, or a method's with its type.
func nameOf(d *ast.FuncDecl) (name string, exported bool) {
	name, exported = d.Name.Name, d.Name.IsExported()
	if d.Recv == nil {
		return name, exported
	}
	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + name, exported && t.IsExported()
		default:
			return name, false
		}
	}
}

// specExports adds what a declaration of types, variables or constants exports. The
// comment of a group is good for all variables and constants in it.
func specExports(found map[string]bool, grouped bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			found[s.Name.Name] = grouped || s.Doc != nil || s.Comment != nil
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				found[name.Name] = grouped || s.Doc != nil || s.Comment != nil
			}
		}
	}
}

// The check can fail: it tells what is documented from what is not.
func TestUndocumentedExportsAreFound(t *testing.T) {
	const src = `package p
// A is documented.
type A struct{}
type B struct{}
func (a *A) C() {}
func (b B[T]) D() {}
func (x hidden) E() {}
// F is documented.
func F() {}
// All of these.
const ( G = 1; H = 2 )
var ( I = 1 // so is this
	J = 2 )
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got := exports(file)
	want := map[string]bool{"A": true, "B": false, "A.C": false, "B.D": false, "F": true, "G": true, "H": true, "I": true, "J": false}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for name, documented := range want {
		if d, found := got[name]; !found || d != documented {
			t.Errorf("%s: found %v, documented %v, want %v", name, found, d, documented)
		}
	}
}
