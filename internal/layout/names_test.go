// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tree is what documents can name.
type tree struct {
	files   map[string]bool            // by every end of their paths
	names   map[string]bool            // all that are declared
	members map[string]map[string]bool // of packages and types, by the name of these
}

// Documents name files, tests and declarations that exist. CHANGELOG.md also has names of
// former versions.
func TestDocumentsNameWhatExists(t *testing.T) {
	all := theTree(t)
	named := 0
	for _, path := range documents(t) {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n, wrong := all.check(string(page))
		named += n
		for _, w := range wrong {
			t.Errorf("%s: %s", filepath.ToSlash(path), w)
		}
	}
	if named < 800 {
		t.Errorf("only %d names looked at", named)
	}
}

// documents returns the paths of the pages.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d pages, %v", len(paths), err)
	}
	return paths
}

func theTree(t *testing.T) *tree {
	t.Helper()
	all := &tree{map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		for end := filepath.ToSlash(rel); err == nil && end != ""; {
			all.files[end] = true
			_, end, _ = strings.Cut(end, "/")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sources(t, func(dir, path string, src []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			all.declare(strings.TrimSuffix(file.Name.Name, "_test"), d)
		}
	})
	return all
}

func (all *tree) add(of, name string) {
	all.names[name] = true
	if all.members[of] == nil {
		all.members[of] = map[string]bool{}
	}
	all.members[of][name] = true
}

// declare notes what a declaration of a package declares, fields and methods too.
func (all *tree) declare(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			all.add(pkg, d.Name.Name)
		} else {
			all.add(receiver(d.Recv.List[0].Type), d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					all.add(pkg, n.Name)
				}
			case *ast.TypeSpec:
				all.add(pkg, s.Name.Name)
				all.fields(s.Name.Name, s.Type)
			}
		}
	}
}

// fields records the fields or methods in a type, and what it embeds.
func (all *tree) fields(of string, x ast.Expr) {
	ast.Inspect(x, func(n ast.Node) bool {
		f, is := n.(*ast.Field)
		if !is {
			return true
		}
		for _, name := range f.Names {
			all.add(of, name.Name)
		}
		if len(f.Names) == 0 {
			all.add(of, "") // more than is noted here
		}
		return true
	})
}

var (
	code      = regexp.MustCompile("`([^`\n]+)`")
	fileName  = regexp.MustCompile(`^[\w./*-]*\w\*?\.(go|c|h|md)$`)
	testName  = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z]\w*`)
	qualified = regexp.MustCompile(`^(\w+)\.(\w+)(\(.*\))?$`)
)

// others are names of Linux that look like ours.
var others = map[string]bool{"memory.max": true, "vm.max_map_count": true}

// check counts the names in a page, and says which do not exist. Names of other projects
// are qualified by a package or type that is none of ours.
func (all *tree) check(page string) (named int, wrong []string) {
	for _, m := range code.FindAllStringSubmatch(page, -1) {
		name := strings.TrimPrefix(m[1], "./")
		switch q := qualified.FindStringSubmatch(name); {
		case fileName.MatchString(name):
			if named++; !all.hasFile(name) {
				wrong = append(wrong, fmt.Sprintf("`%s` is no file here", name))
			}
		case testName.MatchString(name):
			test, _, _ := strings.Cut(name, "/")
			if named++; !all.names[test] && test == testName.FindString(name) {
				wrong = append(wrong, fmt.Sprintf("`%s` is no test here", name))
			}
		case q != nil && all.members[q[1]] != nil && !others[name]:
			if named++; !all.members[q[1]][q[2]] && !(all.members[q[1]][""] && all.names[q[2]]) {
				wrong = append(wrong, fmt.Sprintf("%s has no `%s`", q[1], q[2]))
			}
		}
	}
	return named, wrong
}

// hasFile reports whether there is a file of a name, or of a pattern, in any folder.
// Linux has files of its own.
func (all *tree) hasFile(name string) bool {
	if strings.HasPrefix(name, "net/") {
		return true
	}
	if !strings.Contains(name, "*") {
		return all.files[name]
	}
	for file := range all.files {
		if is, err := filepath.Match(name, file); is && err == nil {
			return true
		}
	}
	return false
}

// The check can fail.
func TestDocumentsCanBeWrong(t *testing.T) {
	all := &tree{
		files:   map[string]bool{"internal/a/x.go": true, "a/x.go": true, "x.go": true},
		names:   map[string]bool{"TestA": true, "Do": true, "Deep": true},
		members: map[string]map[string]bool{"a": {"T": true, "TestA": true}, "T": {"Do": true}, "E": {"": true}},
	}
	for page, want := range map[string]int{
		"`x.go` and `a/x.go`, `x*.go`": 0, "`y.go`": 1, "`b/x.go`": 1, "`y*.go`": 1, "`TestA`, `TestA/sub`": 0,
		"`TestB`": 1, "`T.Do`, `a.T`, `T.Do(x)`": 0, "`T.Undo`": 1, "`a.U`": 1, "`E.Deep`": 0, "`E.Other`": 1,
		"`net.IP`": 0, "x.y": 0,
	} {
		if _, wrong := all.check(page); len(wrong) != want {
			t.Errorf("%q: %q, want %d", page, wrong, want)
		}
	}
}
