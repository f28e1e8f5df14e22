// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// ring.h has the numbers and the layouts of the Go sources, all of them and no others.
func TestHeaderForC(t *testing.T) {
	text, err := os.ReadFile("../../include/xdpfab/ring.h")
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseHeader(string(text))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "#define", h.defines, definesForC())
	same(t, "enum", names(h.enums), names(enumsForC(t)))
	for name, want := range enumsForC(t) {
		same(t, name, h.enums[name], want)
	}
	same(t, "struct", names(h.structs), names(structsForC(t)))
	for name, want := range structsForC(t) {
		got := h.structs[name]
		same(t, name, got.named(), want.fields)
		if got.size != want.size {
			t.Errorf("%s: %d bytes in ring.h, %d in Go", name, got.size, want.size)
		}
	}
	t.Run("compiled", func(t *testing.T) { compile(t, h) })
}

// same compares what ring.h has with what Go has.
func same[V comparable](t *testing.T, what string, c, want map[string]V) {
	t.Helper()
	all := maps.Clone(c)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		got, inC := c[name]
		value, inGo := want[name]
		switch {
		case !inC:
			t.Errorf("%s: ring.h lacks %s, which is %v in Go", what, name, value)
		case !inGo:
			t.Errorf("%s: %s of ring.h is unknown to Go", what, name)
		case got != value:
			t.Errorf("%s: %s is %v in ring.h, and %v in Go", what, name, got, value)
		}
	}
}

func names[V any](of map[string]V) map[string]bool {
	all := map[string]bool{}
	for name := range of {
		all[name] = true
	}
	return all
}

// compile has the compiler say that ring.h is what it was read as.
func compile(t *testing.T, h *cHeader) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler has looked at ring.h, its text alone was compared: apt-get install gcc libc6-dev")
	}
	var src strings.Builder
	fmt.Fprint(&src, "#include \"ring.h\"\n#include \"ring.h\"\n#include <stddef.h>\n")
	assert := func(of string, value uint64) {
		fmt.Fprintf(&src, "_Static_assert(%s == %d, \"%s\");\n", of, value, of)
	}
	for name, value := range h.defines {
		assert(name, value)
	}
	for _, e := range h.enums {
		for name, value := range e {
			assert(name, value)
		}
	}
	for name, s := range h.structs {
		assert("sizeof(struct "+name+")", s.size)
		for field, at := range s.fields {
			assert(fmt.Sprintf("offsetof(struct %s, %s)", name, field), at.offset)
			assert(fmt.Sprintf("sizeof(((struct %s *)0)->%s)", name, field), at.size)
		}
	}
	path := filepath.Join(t.TempDir(), "header.c")
	if err := os.WriteFile(path, []byte(src.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(cc, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only",
		"-I", "../../include/xdpfab", path).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// definesForC are the macros of ring.h.
func definesForC() map[string]uint64 {
	return map[string]uint64{"XDPFAB_MAGIC": Magic, "XDPFAB_VERSION": Version, "XDPFAB_PAGE": page,
		"XDPFAB_INLINE": engine.InlineLen, "XDPFAB_INLINE_RESULT": engine.InlineResult,
		"XDPFAB_NO_LIMIT":    uint64(wire.NoLimit),
		"XDPFAB_NO_DATATYPE": uint64(wire.NoDatatype)}
}

// notForC are constants that a program in C has no use for.
var notForC = map[string]string{
	"VerbPart":       "the host cuts messages into parts itself",
	"VerbNotice":     "the host adds it, for an entry with XDPFAB_DATA",
	"VerbLocal":      "the number of VerbConnect",
	"NumAtomicVerbs": "the length of a table",
	"FlagPieces":     "a list of pointers, which another process cannot follow",
}

// enumsForC are the enums of ring.h.
func enumsForC(t *testing.T) map[string]map[string]uint64 {
	src := newSources()
	all := map[string]map[string]uint64{}
	add := func(enum, prefix string, constants map[string]uint64, cut string) {
		if all[enum] == nil {
			all[enum] = map[string]uint64{}
		}
		for name, value := range constants {
			if notForC[name] == "" {
				all[enum][prefix+upperSnake(strings.TrimPrefix(name, cut))] = value
			}
		}
	}
	for _, folder := range []string{"internal/wire", "internal/engine", "internal/share"} {
		add("xdpfab_verb", "XDPFAB_", src.ofType(t, folder, "wire.Verb"), "Verb")
	}
	add("xdpfab_flag", "XDPFAB_", src.prefixed(t, "internal/engine", "Flag"), "Flag")
	add("xdpfab_outcome", "XDPFAB_", src.ofType(t, "internal/engine", "engine.Outcome"), "")
	add("xdpfab_completed", "XDPFAB_", src.prefixed(t, "internal/engine", "Completed"), "")
	add("xdpfab_status", "XDPFAB_STATUS_", src.ofType(t, "internal/wire", "wire.Status"), "Status")
	add("xdpfab_reason", "XDPFAB_REASON_", src.ofType(t, "internal/session", "session.Reason"), "")
	add("xdpfab_access", "XDPFAB_", src.prefixed(t, "internal/wire", "Access"), "")
	add("xdpfab_arrival_kind", "XDPFAB_", src.prefixed(t, "internal/share", "kind"), "kind")
	add("xdpfab_arrival_flag", "XDPFAB_ARRIVAL_", src.prefixed(t, "internal/share", "flag"), "flag")
	ops, datatypes := map[string]uint64{}, map[string]uint64{}
	for op := range atomic.Ops() {
		ops["XDPFAB_OP_"+strings.ToUpper(op.String())] = uint64(op)
	}
	for i := range atomic.NumDatatypes {
		datatypes["XDPFAB_TYPE_"+strings.ToUpper(atomic.Datatype(i).String())] = uint64(i)
	}
	all["xdpfab_op"], all["xdpfab_datatype"] = ops, datatypes
	return all
}

// upperSnake turns NoKey into NO_KEY.
func upperSnake(name string) string {
	var b strings.Builder
	last := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
		last = r
	}
	return b.String()
}

// structsForC are the structures of ring.h.
func structsForC(t *testing.T) map[string]cStruct {
	return map[string]cStruct{
		"xdpfab_header": structOf(header{}, nil),
		"xdpfab_entry":  structOf(engine.Entry{}, map[string]string{"Opcode": "op", "Inline": "operands"}),
		"xdpfab_places": structOf(places{}, nil),
		"xdpfab_signal": structOf(wire.Signal{}, nil),
		"xdpfab_extent": structOf(mr.Extent{}, nil),
		"xdpfab_completion": structOf(engine.Completion{},
			map[string]string{"Data": "life", "Source": "", "Inline": "result"}),
		"xdpfab_arrival":   structOf(record{}, map[string]string{"MAC": "mac", "HasIP": "has_ip", "IP": "ip"}),
		"xdpfab_room":      structOf(matching.Room{}, nil),
		"xdpfab_admission": structOf(Admission{}, nil),
		"xdpfab_region":    regionForC(t),
		"xdpfab_operation": structOf(operationHead{}, nil),
		"xdpfab_said":      structOf(said{}, nil),
	}
}

// structOf lays a structure of Go out under names of C, of which some are given. A field
// whose name is empty has none.
func structOf(of any, given map[string]string) cStruct {
	s := cStruct{fields: map[string]cField{}, size: uint64(reflect.TypeOf(of).Size())}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
		name, is := given[f.Name]
		if !is {
			name = strings.ToLower(upperSnake(f.Name))
		}
		if f.Name != "_" && name != "" {
			s.fields[name] = cField{uint64(f.Offset), uint64(f.Type.Size())}
		}
	}
	return s
}

// regionForC finds where an entry of the catalogue has its fields, by filling in one at a
// time.
func regionForC(t *testing.T) cStruct {
	s := cStruct{fields: map[string]cField{}, size: wire.EntryLen}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[wire.Entry]()) {
		var e wire.Entry
		name := strings.ToLower(upperSnake(f.Name))
		if f.Name == "Name" {
			e.NameLen = wire.MaxNameLen
			for i := range e.Name {
				e.Name[i] = 0xff
			}
		} else if v := reflect.ValueOf(&e).Elem().FieldByIndex(f.Index); f.Name == "NameLen" {
			v.SetUint(wire.MaxNameLen)
		} else {
			v.SetUint(1<<(8*f.Type.Size()-1)<<1 - 1)
		}
		b := make([]byte, wire.EntryLen)
		e.Put(b)
		if f.Name == "Name" {
			b = bytes.ReplaceAll(b, []byte{wire.MaxNameLen}, []byte{0})
		}
		set := bytes.TrimLeft(b, "\x00")
		at := len(b) - len(set)
		if set = bytes.TrimRight(set, "\x00"); len(set) == 0 {
			t.Fatalf("a catalogue entry does not show its %s", f.Name)
		}
		s.fields[name] = cField{uint64(at), uint64(len(set))}
	}
	return s
}
