// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// go doc shows neither the methods that Domain embeds nor anything of an alias but its
// comment. So the comment names each field and method, and the type that has them.
func TestAliasesAreDescribed(t *testing.T) {
	comments, aliases := typesOfPackage(t)
	described := map[string]any{"Domain": &fi.Domain{}, "OpError": &xdpfab.OpError{}, "DomainAttr": &xdpfab.DomainAttr{},
		"EndpointAttr": &xdpfab.EndpointAttr{}, "RemoteRegion": &xdpfab.RemoteRegion{}, "Faults": &xdpfab.Faults{}}
	for _, name := range aliases {
		if described[name] == nil {
			t.Errorf("%s is an alias that this test does not know", name)
		}
	}
	for name, value := range described {
		for _, member := range append(membersOf(reflect.TypeOf(value)), "fi."+name) {
			if !regexp.MustCompile(`\b` + member + `\b`).MatchString(comments[name]) {
				t.Errorf("the comment of %s does not name %s", name, member)
			}
		}
	}
}

// membersOf returns the methods and, of what has no secrets, the fields.
func membersOf(p reflect.Type) (names []string) {
	for i := range p.NumMethod() {
		names = append(names, p.Method(i).Name)
	}
	for i := range p.Elem().NumField() {
		if f := p.Elem().Field(i); f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}

// typesOfPackage returns the comments of the package's types, and its aliases.
func typesOfPackage(t *testing.T) (comments map[string]string, aliases []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	comments = map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				x := s.(*ast.TypeSpec)
				if comments[x.Name.Name] = g.Doc.Text() + x.Doc.Text(); x.Assign.IsValid() && x.Name.IsExported() {
					aliases = append(aliases, x.Name.Name)
				}
			}
		}
	}
	return comments, aliases
}
