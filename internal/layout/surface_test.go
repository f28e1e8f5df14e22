// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the surface of the public packages down as it is")

// public are the packages for users of the module. What they export is written down in
// api, one line a symbol, so that whoever changes it sees the change, and so does the
// review.
var public = []string{"atomic", "bpf", "mr", "xdpfab", "xdpfab/directory", "xdpfab/directory/etcd", "xdpfab/fi", "xdpfab/sync", "xsk"}

func TestSurface(t *testing.T) {
	for _, name := range public {
		t.Run(name, func(t *testing.T) {
			lines, err := surfaceOf(filepath.Join("..", "..", name))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("..", "..", "api", filepath.Base(name)+".txt")
			got := strings.Join(lines, "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			written, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(written) != got {
				t.Errorf("%s is not what the package exports:\n%s\nif that is meant, run `go test ./internal/layout -update`",
					file, difference(strings.Split(strings.TrimSuffix(string(written), "\n"), "\n"), lines))
			}
		})
	}
}

// difference lists the lines of only one of the two, with the sign of a patch.
func difference(old, new []string) string {
	var b strings.Builder
	for _, l := range old {
		if !slices.Contains(new, l) {
			fmt.Fprintf(&b, "-%s\n", l)
		}
	}
	for _, l := range new {
		if !slices.Contains(old, l) {
			fmt.Fprintf(&b, "+%s\n", l)
		}
	}
	return b.String()
}

// surfaceOf returns what the package in a folder exports, in order.
func surfaceOf(dir string) ([]string, error) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH = "linux", "amd64" // wherever the test runs
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := surface{promotable: map[string][]string{}, embeds: map[string][]string{}}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if match, err := ctx.MatchFile(dir, e.Name()); err != nil || !match {
			if err != nil {
				return nil, err
			}
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.file(file)
	}
	return s.sorted(), s.err
}

// surface gathers the lines of a package.
type surface struct {
	lines      []string
	promotable map[string][]string // signatures of exported methods by the hidden type that has them
	embeds     map[string][]string // hidden types by the exported structure that embeds them
	err        error
}

// sorted returns all lines, with the methods that structures have of hidden types.
func (s *surface) sorted() []string {
	for of, types := range s.embeds {
		for _, t := range types {
			for _, m := range s.promotable[t] {
				s.add("method (%s) %s // of %s", of, m, t)
			}
		}
	}
	slices.Sort(s.lines)
	return s.lines
}

func (s *surface) add(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *surface) file(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			s.function(d)
		case *ast.GenDecl:
			s.group(d)
		}
	}
}

func (s *surface) function(d *ast.FuncDecl) {
	name, exported := nameOf(d)
	switch {
	case !d.Name.IsExported():
	case d.Recv == nil:
		s.add("func %s", s.signature(name, d.Type))
	case exported:
		s.add("method (%s) %s", s.text(d.Recv.List[0].Type), s.signature(d.Name.Name, d.Type))
	default:
		of, _, _ := strings.Cut(name, ".")
		s.promotable[of] = append(s.promotable[of], s.signature(d.Name.Name, d.Type))
	}
}

// signature is a function's name and type.
func (s *surface) signature(name string, t *ast.FuncType) string {
	return name + strings.TrimPrefix(s.text(t), "func")
}

// group adds a declaration of constants, variables or types. A constant without a value
// of its own repeats the one before, which iota makes another one: so its place counts.
func (s *surface) group(d *ast.GenDecl) {
	var typ ast.Expr
	var values []ast.Expr
	for place, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.typ(spec)
		case *ast.ValueSpec:
			if d.Tok != token.CONST || len(spec.Values) > 0 {
				typ, values = spec.Type, spec.Values
			}
			for i, name := range spec.Names {
				if name.IsExported() {
					s.value(d.Tok, name.Name, typ, values, i, place)
				}
			}
		}
	}
}

// value adds a constant with its value, or a variable with its type.
func (s *surface) value(tok token.Token, name string, typ ast.Expr, values []ast.Expr, i, place int) {
	line := tok.String() + " " + name
	if typ != nil {
		line += " " + s.text(typ)
	}
	if i < len(values) && (tok == token.CONST || typ == nil) {
		line += " = " + s.text(values[i])
		if mentions(values[i], "iota") {
			line += fmt.Sprintf(" // iota %d", place)
		}
	}
	s.add("%s", line)
}

// mentions reports whether an identifier occurs in an expression.
func mentions(e ast.Expr, name string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// typ adds a type; of a structure, its exported fields, and of an interface, its methods.
func (s *surface) typ(spec *ast.TypeSpec) {
	if !spec.Name.IsExported() {
		return
	}
	name := spec.Name.Name
	if spec.TypeParams != nil {
		name += "[" + s.fields(spec.TypeParams) + "]"
	}
	switch t := spec.Type.(type) {
	case *ast.StructType:
		s.add("type %s struct", name)
		s.members(spec.Name.Name, t)
	default:
		if spec.Assign.IsValid() {
			name += " ="
		}
		s.add("type %s %s", name, s.text(t))
	}
}

// members adds the exported fields of a structure, and notes that it has others: such a
// one can be made by its package alone, or only with field names.
func (s *surface) members(of string, t *ast.StructType) {
	hidden := false
	for _, f := range t.Fields.List {
		names := f.Names
		if names == nil {
			e := embedded(f.Type)
			names = []*ast.Ident{e}
			if e != nil && !e.IsExported() {
				s.embeds[of] = append(s.embeds[of], e.Name)
			}
		}
		for _, n := range names {
			if n == nil || !n.IsExported() {
				hidden = true
				continue
			}
			line := fmt.Sprintf("field %s.%s %s", of, n.Name, s.text(f.Type))
			if f.Tag != nil {
				line += " " + f.Tag.Value
			}
			s.add("%s", line)
		}
	}
	if hidden {
		s.add("field %s has unexported ones", of)
	}
}

// embedded is the name under which a type is embedded.
func embedded(t ast.Expr) *ast.Ident {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.SelectorExpr:
			return x.Sel
		case *ast.Ident:
			return x
		default:
			return nil
		}
	}
}

// fields are type parameters.
func (s *surface) fields(list *ast.FieldList) string {
	var all []string
	for _, f := range list.List {
		var names []string
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
		all = append(all, strings.Join(names, ", ")+" "+s.text(f.Type))
	}
	return strings.Join(all, ", ")
}

// text is a piece of source on one line, without comments.
func (s *surface) text(n any) string {
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.RawFormat}).Fprint(&b, token.NewFileSet(), n); err != nil {
		s.err = err
	}
	line := ""
	for part := range strings.Lines(b.String()) {
		part = strings.Join(strings.Fields(part), " ")
		switch {
		case line == "" || part == "":
		case strings.HasSuffix(line, "{") || strings.HasSuffix(line, "|") || strings.HasPrefix(part, "}"):
			line += " "
		default: // a method ends
			line += "; "
		}
		line += part
	}
	return line
}

// The surface has everything that a user can name, and nothing else.
func TestSurfaceIsWhole(t *testing.T) {
	dir := t.TempDir()
	const src = `package p
import "io"
type A struct { B, c int; io.Reader; hidden; D string ` + "`json:\"d\"`" + ` }
type hidden struct{}
func (hidden) Promoted() {}
func (*hidden) unexported() {}
func (a *A) E(x, y int, f func(z int) error) (n int, err error) { return 0, nil }
type F[T any, U ~int] []T
func (F[T, U]) G() {}
type H = A
type I interface { J(); k() }
func L[T any](...T) {}
const ( M = iota << 1; n; O )
const P, Q uint8 = 1, 2
var R, s = 1, 2
var V map[string]int // with a comment
func w() {}
`
	for name, text := range map[string]string{"p.go": src, "p_test.go": "package p; func T() {}", "p_windows.go": "package p; func W() {}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"const M = iota << 1 // iota 0", "const O = iota << 1 // iota 2", "const P uint8 = 1", "const Q uint8 = 2",
		"field A has unexported ones", "field A.B int", "field A.D string `json:\"d\"`", "field A.Reader io.Reader",
		"func L[T any](...T)", "method (*A) E(x, y int, f func(z int) error) (n int, err error)", "method (A) Promoted() // of hidden",
		"method (F[T, U]) G()", "type A struct", "type F[T any, U ~int] []T", "type H = A", "type I interface { J(); k() }",
		"var R = 1", "var V map[string]int",
	}
	got, err := surfaceOf(dir)
	if err != nil || difference(want, got) != "" {
		t.Errorf("%v\n%s", err, difference(want, got))
	}
}
