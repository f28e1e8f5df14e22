// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// cHeader is what a header in C declares.
type cHeader struct {
	defines map[string]uint64
	enums   map[string]map[string]uint64
	structs map[string]cStruct
}

type cStruct struct {
	fields map[string]cField
	size   uint64
}

type cField struct{ offset, size uint64 }

// named are the fields that mean something.
func (s cStruct) named() map[string]cField {
	all := map[string]cField{}
	for name, f := range s.fields {
		if !strings.HasPrefix(name, "pad") && name != "reserved" {
			all[name] = f
		}
	}
	return all
}

var (
	cComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cDefine  = regexp.MustCompile(`(?m)^#define (\w+) (\w+)$`)
	cEnum    = regexp.MustCompile(`(?s)enum (\w+) \{(.*?)\};`)
	cStructs = regexp.MustCompile(`(?s)struct (\w+) \{(.*?)\};`)
	cField1  = regexp.MustCompile(`^(\w+)(?:\[(\w+)\])?$`)
	cRest    = regexp.MustCompile(`#ifndef XDPFAB_RING_H|#define XDPFAB_RING_H|#include <stdint\.h>|#endif`)
)

// parseHeader reads a header that has macros of numbers, enums whose numbers are given,
// and structures of integers, arrays and structures, and nothing else.
func parseHeader(text string) (*cHeader, error) {
	text = cComment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	text = strings.Join(lines, "\n")
	h := &cHeader{map[string]uint64{}, map[string]map[string]uint64{}, map[string]cStruct{}}
	for _, m := range cDefine.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseUint(strings.TrimSuffix(m[2], "u"), 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m[1], err)
		}
		h.defines[m[1]] = n
	}
	for _, m := range cEnum.FindAllStringSubmatch(text, -1) {
		values := map[string]uint64{}
		for _, x := range strings.Split(strings.TrimSuffix(strings.TrimSpace(m[2]), ","), ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(x), " = ")
			n, err := strconv.ParseUint(value, 0, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: want NAME = NUMBER: %w", m[1], x, err)
			}
			values[name] = n
		}
		h.enums[m[1]] = values
	}
	for _, m := range cStructs.FindAllStringSubmatch(text, -1) {
		s, err := h.layOut(m[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m[1], err)
		}
		h.structs[m[1]] = s
	}
	for _, known := range []*regexp.Regexp{cRest, cDefine, cEnum, cStructs} {
		text = known.ReplaceAllString(text, "")
	}
	if rest := strings.TrimSpace(text); rest != "" {
		return nil, fmt.Errorf("%q is nothing that this test can read", rest)
	}
	return h, nil
}

// layOut places the fields of a structure as compilers do on amd64 and arm64.
func (h *cHeader) layOut(body string) (s cStruct, err error) {
	s.fields = map[string]cField{}
	widest := uint64(1)
	for _, decl := range strings.Split(strings.TrimSpace(body), ";") {
		if decl = strings.TrimSpace(decl); decl == "" {
			continue
		}
		decl = strings.Replace(decl, "struct ", "struct\x00", 1)
		of, names, _ := strings.Cut(decl, " ")
		size, align, err := h.sizeOf(of)
		if err != nil {
			return s, err
		}
		widest = max(widest, align)
		for _, x := range strings.Split(names, ",") {
			m := cField1.FindStringSubmatch(strings.TrimSpace(x))
			if m == nil {
				return s, fmt.Errorf("field %q", x)
			}
			n := uint64(1)
			if m[2] != "" {
				if n = h.defines[m[2]]; n == 0 {
					if n, err = strconv.ParseUint(m[2], 0, 64); err != nil {
						return s, err
					}
				}
			}
			at := (s.size + align - 1) / align * align
			s.fields[m[1]] = cField{at, n * size}
			s.size = at + n*size
		}
	}
	s.size = (s.size + widest - 1) / widest * widest
	return s, nil
}

// sizeOf returns the size and the alignment of a type.
func (h *cHeader) sizeOf(of string) (size, align uint64, err error) {
	if of == "char" {
		return 1, 1, nil
	}
	var bits uint64
	if _, err := fmt.Sscanf(of, "uint%d_t", &bits); err == nil {
		return bits / 8, bits / 8, nil
	}
	if name, is := strings.CutPrefix(of, "struct\x00"); is && h.structs[name].size > 0 {
		for _, f := range h.structs[name].fields {
			align = max(align, min(f.size, 8))
		}
		return h.structs[name].size, align, nil
	}
	return 0, 0, fmt.Errorf("type %q", of)
}

// sources has the constants of this module's packages, as their sources have them.
type sources struct {
	fset *token.FileSet
	pkgs map[string]*types.Package
}

func newSources() *sources { return &sources{token.NewFileSet(), map[string]*types.Package{}} }

const module = "github.com/xdpfab/xdpfab/"

// Import implements types.Importer. Packages from elsewhere are empty: no constant here
// depends on them.
func (s *sources) Import(of string) (*types.Package, error) {
	folder, ours := strings.CutPrefix(of, module)
	if s.pkgs[of] == nil && !ours {
		s.pkgs[of] = types.NewPackage(of, path.Base(of))
		s.pkgs[of].MarkComplete()
	}
	if s.pkgs[of] != nil {
		return s.pkgs[of], nil
	}
	dir := filepath.Join("../..", filepath.FromSlash(folder))
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(s.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	c := types.Config{Importer: s, IgnoreFuncBodies: true, Error: func(error) {}} // what is missing is no constant
	s.pkgs[of], _ = c.Check(of, s.fset, files, nil)
	return s.pkgs[of], nil
}

// constants returns those of a package that pass.
func (s *sources) constants(t *testing.T, folder string, pass func(*types.Const) bool) map[string]uint64 {
	t.Helper()
	p, err := s.Import(module + folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, name := range p.Scope().Names() {
		if c, is := p.Scope().Lookup(name).(*types.Const); is && pass(c) {
			n, exact := constant.Uint64Val(c.Val())
			if !exact {
				t.Errorf("%s.%s is %v", folder, name, c.Val())
			}
			all[name] = n
		}
	}
	if len(all) == 0 {
		t.Errorf("%s: no such constants", folder)
	}
	return all
}

// ofType returns the exported constants of a type.
func (s *sources) ofType(t *testing.T, folder, name string) map[string]uint64 {
	short := func(p *types.Package) string { return p.Name() }
	return s.constants(t, folder, func(c *types.Const) bool {
		return c.Exported() && types.TypeString(c.Type(), short) == name
	})
}

// prefixed returns the constants whose names begin so.
func (s *sources) prefixed(t *testing.T, folder, prefix string) map[string]uint64 {
	return s.constants(t, folder, func(c *types.Const) bool {
		rest, is := strings.CutPrefix(c.Name(), prefix)
		return is && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z'
	})
}
