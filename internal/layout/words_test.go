// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// otherEndings are words that once stood for an ending. The twelve of ARCHITECTURE.md
// replace them: close, end, fail, cancel, remove, release, drop, withdraw, detach, evict,
// retire and drain.
var otherEndings = strings.Fields(`abandon depart destroy dismiss discard dispose dissolve
	endure expel farewell farewells forget forgo forsake hang hush kill linger lodge mourn
	over purge quit sacrifice sever shut terminate unblock vanish`)

// coined are names of the project's own for which the field has terms.
var coined = map[string]string{
	"area": "segment", "areas": "segments", "bell": "doorbell", "bells": "doorbells",
	"berth": "allotment", "carriage": "ring client", "chore": "work", "chores": "work queue",
	"errand": "call", "errands": "calls", "farewell": "close", "fate": "outcome", "fates": "outcomes",
	"ferries": "cross rings", "ferry": "cross ring", "hearing": "listener", "heir": "successor",
	"limbo": "suspended", "lodge": "guest", "lodger": "guest endpoint", "lodging": "tenancy",
	"movable": "migratable", "spare": "lendable or free", "stray": "what it is",
	"strays": "what they are", "usual": "default",
}

// TestWordsForEndings keeps the names of functions and types to the table of
// ARCHITECTURE.md: one word for one thing.
func TestWordsForEndings(t *testing.T) {
	left := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(oldNames), "\n") {
		folder, names, _ := strings.Cut(line, ":")
		for _, name := range strings.Fields(names) {
			left[folder+" "+name] = true
		}
	}
	seen := 0
	sources(t, func(folder, path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, name := range values(t, path, src) {
			if w := coinedWord(name); w != "" {
				t.Errorf("%s: %s: %s", path, name, w)
			}
		}
		for _, name := range topLevel(t, path, src) {
			seen++
			why := otherWord(name)
			switch key := strings.TrimSuffix(folder, "/fi") + " " + name; {
			case why == "":
			case left[key]:
				delete(left, key)
			default:
				t.Errorf("%s: %s: %s", path, name, why)
			}
		}
	})
	for key := range left {
		t.Errorf("%s: the name is gone: take it out of oldNames", key)
	}
	if seen < 3000 {
		t.Errorf("only %d names looked at", seen)
	}
}

// topLevel returns the names of types, functions and methods, methods as Type.Method.
func topLevel(t *testing.T, path string, src []byte) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

// values returns the names of constants, variables and exported fields of a file's
// package.
func values(t *testing.T, path string, src []byte) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		g, is := d.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, s := range g.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			case *ast.TypeSpec:
				names = append(names, exportedFields(s.Type)...)
			}
		}
	}
	return names
}

// exportedFields returns the names of the exported fields of a struct type.
func exportedFields(x ast.Expr) (names []string) {
	s, is := x.(*ast.StructType)
	if !is {
		return nil
	}
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			if n.IsExported() {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// coinedWord reports which word of a name is one of our own, or nothing.
func coinedWord(name string) string {
	for _, w := range wordsOf(name) {
		if instead := coined[w]; instead != "" {
			return w + " is a word of our own: write " + instead
		}
	}
	return ""
}

// receiver returns the name of a receiver's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// otherWord reports what is wrong with a name, or nothing.
func otherWord(name string) string {
	_, last, is := strings.Cut(name, ".")
	if !is {
		last = name
	}
	words := wordsOf(last)
	for _, w := range otherEndings {
		if words[0] == w {
			return w + " is none of the words for endings: see ARCHITECTURE.md"
		}
	}
	if why := coinedWord(last); why != "" {
		return why
	}
	if two := strings.Join(words[:min(2, len(words))], " "); two == "turn out" || two == "turn back" {
		return two + " is none of the words for endings: see ARCHITECTURE.md"
	}
	return ""
}

var capital = regexp.MustCompile(`[A-Z]+[^A-Z]*|[^A-Z]+`)

// wordsOf splits a name at its capital letters.
func wordsOf(name string) []string {
	words := capital.FindAllString(name, -1)
	for i, w := range words {
		words[i] = strings.TrimFunc(strings.ToLower(w), func(r rune) bool { return !unicode.IsLetter(r) })
	}
	return words
}

// The check can fail: it finds the words, and only whole ones.
func TestOtherWordsAreFound(t *testing.T) {
	for name, bad := range map[string]bool{
		"Guest.forsake": true, "forsakeKept": true, "Bell": true, "NewFerry": true, "turnOut": true, "x.Over": true,
		"overflow": false, "Guest.Close": false, "labels": false, "killed": false, "ShutdownNow": false, "turn": false,
		"Over.Number": false, "usualSize": true, "Area": true, "Guest.Home": false,
	} {
		if found := otherWord(name) != ""; found != bad {
			t.Errorf("%s: found %v, want %v", name, found, bad)
		}
	}
}

// oldNames are exceptions, by folder: Discard is libfabric's own word (FI_DISCARD).
const oldNames = `
internal/matching: Queue.Discard
`
