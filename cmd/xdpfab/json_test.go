// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/diagnose"
	nodes "github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

var update = flag.Bool("update", false, "write the tables of docs/json.md anew")

// jsonOutputs are what the commands print with --json: a value of each type, or nil where
// docs/json.md names another command with the same output.
var jsonOutputs = []struct {
	command, about, example string
	of                      any
}{
	{"list", "A list of regions.", "xdpfab list 10.0.0.2 --json | jq -r '.[].name'", []regionEntry{}},
	{"atomic", "An object. With `--batch` see below.", "xdpfab atomic read uint64 --peer 10.0.0.2 --region counters --json | jq -r '.before[0]'", atomicReport{}},
	{"atomic --batch", "An object for each line of input, with or without `--json`.", "xdpfab atomic --batch lines --peer 10.0.0.2 --region counters | jq -c 'select(.code > 0)'", batchResult{}},
	{"get", "An object.", "xdpfab get 10.0.0.2 saved --region counters --json | jq .bytes", copyReport{}},
	{"put", "As that of `xdpfab get`.", "", nil},
	{"watch", "An object for each change, one a line.", "xdpfab watch 10.0.0.2 --region counters --json | jq -r .value", change{}},
	{"send", "An object.", "xdpfab send 10.0.0.2 hello --json | jq .messages", sendReport{}},
	{"receive", "An object for each message, one a line.", "xdpfab receive -i eth0 --json | jq -r .text", messageReport{}},
	{"ping", "An object.", "xdpfab ping 10.0.0.2 --json | jq .round_trip.p50_ns", pingReport{}},
	{"bench", "An object for each size, one a line.", "xdpfab bench 10.0.0.2 --region counters --json | jq .ops_per_second", bench.Report{}},
	{"diagnose", "An object.", "xdpfab diagnose 10.0.0.2 --json | jq -r .cause", diagnose.Report{}},
	{"info", "An object. With `--fabric`, a list of what `fi_getinfo` would find: `go doc fi.Info`.", "xdpfab info eth0 --json | jq '.interfaces[0].mtu'", infoReport{}},
	{"info --advise", "An object.", "xdpfab info --advise eth0 --json | jq -r '.checks[].check'", adviceReport{}},
	{"doctor", "An object, with or without `--json`.", "xdpfab doctor eth1 | jq .refused", doctorReport{}},
	{"capture", "An object, at the end.", "xdpfab capture -w x.pcapng --duration 10s --json | jq .packets", captured{}},
	{"stat", "An object; with `--watch`, one for each interval.", "xdpfab stat --json | jq .counters.frames_resent", statReport{}},
	{"stat sessions", "An object.", "xdpfab stat sessions --json | jq -r '.peers[].peer'", control.Peers{}},
	{"stat peers", "An object.", "xdpfab stat peers --json | jq '.peers[].rtt_ns'", control.PeerNodes{}},
	{"stat regions", "A list of the regions of the daemon and of guests.", "xdpfab stat regions --json | jq '.[].size'", []regionRow{}},
	{"stat guests", "A list of the guests.", "xdpfab stat guests --json | jq '.[].user'", []control.Guest{}},
	{"region create", "The region, an object.", "xdpfab region create scores=1MiB --json | jq -r .key", control.Region{}},
	{"region remove", "As that of `xdpfab region create`.", "", nil},
	{"kept", "A list of regions.", "xdpfab kept --json | jq -r '.[].name'", []control.Kept{}},
	{"region", "As that of `xdpfab stat regions`.", "", nil},
	{"resident", "As that of `xdpfab resident list`.", "", nil},
	{"kept remove", "The region, an object of the list of `xdpfab kept`.", "", nil},
	{"resident list", "A list of folders.", "xdpfab resident list --json | jq -r '.[].folder'", []resident.Left{}},
	{"config", "An object.", "xdpfab config --json | jq -r '.settings[].key'", configReport{}},
	{"nodes", "A list of nodes.", "xdpfab nodes --json | jq -r '.[].name'", []nodeEntry{}},
	{"version", "An object.", "xdpfab version --json | jq -r .version", version.Report{}},
	{"demo", "An object.", "xdpfab demo --json | jq .exact", demoReport{}},
	{"errors", "With `--json`, a command that fails prints this object on stderr.", "xdpfab list 10.0.0.9 --json 2>&1 | jq .code", errorReport{}},
}

// The tables of docs/json.md are those of the code, and every command that takes --json
// has one.
func TestJSONReference(t *testing.T) {
	const path, begin, end = "../../docs/json.md", "## The commands\n", "\n## The control socket"
	page, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no documents, as in a virtual machine")
	} else if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	var known []string
	tables := jsonTables{comments: map[reflect.Type]map[string]string{}, shown: map[reflect.Type]string{}, told: map[string]bool{}}
	for _, o := range jsonOutputs {
		known = append(known, o.command)
		tables.section(t, o.command, o.about, o.example, o.of)
	}
	for _, name := range jsonCommands((&app{}).root(), "") {
		if !slices.Contains(known, name) {
			t.Errorf("xdpfab %s takes --json, and has no entry in jsonOutputs", name)
		}
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(meanings)), slices.Collect(maps.Keys(usual))) {
		if !tables.told[key] {
			t.Errorf("no field has the meaning of %s: delete it", key)
		}
	}
	before, rest, found := strings.Cut(text, begin)
	_, after, more := strings.Cut(rest, end)
	if !found || !more {
		t.Fatalf("%s: no text between %q and %q", path, begin, end)
	}
	want := before + begin + tables.out.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Errorf("%s differs from the code: go test ./cmd/xdpfab -run JSONReference -update", path)
	}
}

var (
	verbInSource = regexp.MustCompile(`(?:Look\(|Verb\{|\{Name: |^\t\t\{)"([a-z-]+)", `)
	pathInSource = regexp.MustCompile(`= "(/[a-z0-9/]+)"`)
)

// docs/json.md has every verb and every path of the control socket.
func TestJSONReferenceOfSocket(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no documents, as in a virtual machine")
	} else if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## The control socket")
	found := 0
	for _, path := range []string{"internal/control/verb.go", "internal/control/peers.go", "cmd/xdpfabd/socket.go", "cmd/xdpfabd/region.go", "internal/control/control.go", "internal/share/verbs.go"} {
		source, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			for _, m := range append(verbInSource.FindAllStringSubmatch(line, -1), pathInSource.FindAllStringSubmatch(line, -1)...) {
				if found++; !strings.Contains(text, m[1]+"`") {
					t.Errorf("docs/json.md lacks %s of %s", m[1], path)
				}
			}
		}
	}
	if found < 14 {
		t.Errorf("%d verbs and paths were found in the source: are these all?", found)
	}
}

// jsonCommands are those that take --json, by their names.
func jsonCommands(c *cobra.Command, above string) (names []string) {
	for _, sub := range c.Commands() {
		name := strings.TrimSpace(above + " " + sub.Name())
		if sub.Flags().Lookup("json") != nil && !sub.Hidden {
			names = append(names, name)
		}
		names = append(names, jsonCommands(sub, name)...)
	}
	return names
}

// jsonTables writes sections, and remembers which types they have shown.
type jsonTables struct {
	out      strings.Builder
	comments map[reflect.Type]map[string]string // of fields
	shown    map[reflect.Type]string            // where: a command and a path
	told     map[string]bool                    // keys of meanings
}

// jsonPath is what an example takes of the output.
var jsonPath = regexp.MustCompile(`jq (?:-\w )?'?(?:select\()?(?:\.\[\])?\.([\w.\[\]]+)`)

func (j *jsonTables) section(t *testing.T, command, about, example string, of any) {
	t.Helper()
	title := "`xdpfab " + command + "`"
	if command == "errors" {
		title = "Errors"
	}
	fmt.Fprintf(&j.out, "\n### %s\n\n%s\n", title, about)
	if of == nil {
		return
	}
	typ := reflect.TypeOf(of)
	if typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	fmt.Fprintf(&j.out, "\n    %s\n", example)
	rows := jsonTables{comments: j.comments, shown: map[reflect.Type]string{}, told: j.told}
	rows.fields(t, typ, ".", title)
	if known := j.shown[typ]; known != "" {
		fmt.Fprintf(&j.out, "\nThe fields are those of %s.\n", known)
	} else {
		j.remember(typ, title)
		j.out.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
		j.fields(t, typ, ".", title)
	}
	m := jsonPath.FindStringSubmatch(example)
	if m == nil {
		t.Fatalf("the example of %s takes no field", command)
	}
	path, all := strings.ReplaceAll(m[1], "[0]", "[]"), rows.out.String()
	above, _, _ := strings.Cut(path, ".")
	if !strings.Contains(all, "`."+path+"`") && !strings.Contains(all, "`."+path+"[]`") && !strings.Contains(all, "`."+above+".NAME`") {
		t.Errorf("the example of %s asks for %s, which it lacks", command, path)
	}
}

// fewFields are so few that a table shows them again rather than naming another table.
const fewFields = 4

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// fields writes a row for each field of a struct, and behind it those of its own fields.
func (j *jsonTables) fields(t *testing.T, typ reflect.Type, path, title string) {
	t.Helper()
	for f := range jsonFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind, inner := jsonKind(f.Type)
		if strings.Contains(options, "omitempty") || f.Type.Kind() == reflect.Pointer {
			kind += ", or none"
		}
		meaning, at := j.comment(t, f, cmp.Or(name, f.Name)), path+cmp.Or(name, f.Name)
		if strings.HasPrefix(kind, "list") {
			at += "[]"
		} else if strings.HasPrefix(kind, "map") {
			at += ".NAME"
		}
		known := j.shown[inner]
		if inner != nil && known != "" {
			meaning += "; its fields are those of " + known
		}
		if meaning = strings.TrimPrefix(meaning, "; "); meaning == "" {
			t.Errorf("%s of %s has no meaning: want a comment on the field of %v, or an entry in usual", at, title, typ)
		}
		fmt.Fprintf(&j.out, "| `%s` | %s | %s |\n", at, kind, strings.ReplaceAll(meaning, "|", `\|`))
		if inner == nil || known != "" {
			continue
		}
		j.remember(inner, "`"+at+"` of "+title)
		j.fields(t, inner, at+".", title)
	}
}

// remember notes where the fields of a struct are, and so those of its embedded structs.
func (j *jsonTables) remember(typ reflect.Type, where string) {
	n := 0
	for range jsonFields(typ) {
		n++
	}
	if n > fewFields && j.shown[typ] == "" {
		j.shown[typ] = where
	}
	for i := range typ.NumField() {
		if f := typ.Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct {
			j.remember(f.Type, where)
		}
	}
}

// jsonField is a field, and the struct that declares it.
type jsonField struct {
	reflect.StructField
	of reflect.Type
}

// jsonFields are those that JSON has of a struct. A field hides those of the same name in
// embedded structs.
func jsonFields(typ reflect.Type) iter.Seq[jsonField] {
	return func(yield func(jsonField) bool) {
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() || f.Anonymous && name == "" {
				continue
			}
			of := typ
			for _, i := range f.Index[:len(f.Index)-1] {
				of = of.Field(i).Type
			}
			if direct, _ := typ.FieldByName(f.Name); slices.Equal(direct.Index, f.Index) && !yield(jsonField{f, of}) {
				return
			}
		}
	}
}

// jsonKind returns what JSON makes of a type, and the struct that it has inside.
func jsonKind(typ reflect.Type) (kind string, inner reflect.Type) {
	if p := reflect.PointerTo(typ); typ.Kind() != reflect.Pointer && (p.Implements(marshaler) || p.Implements(textMarshaler)) {
		return "string", nil
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return jsonKind(typ.Elem())
	case reflect.Struct:
		return "object", typ
	case reflect.Slice, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "string, base64", nil
		}
		kind, inner = jsonKind(typ.Elem())
		return "list of " + strings.Replace(kind, "object", "objects", 1) + map[bool]string{true: "s"}[inner == nil], inner
	case reflect.Map:
		kind, inner = jsonKind(typ.Elem())
		return "map to " + kind, inner
	case reflect.Bool:
		return "boolean", nil
	case reflect.String:
		return "string", nil
	}
	return "number", nil
}

// comment is what the source says of a field, with the names that JSON has.
func (j *jsonTables) comment(t *testing.T, f jsonField, name string) string {
	t.Helper()
	if j.comments[f.of] == nil {
		j.comments[f.of] = fieldComments(t, f.of)
	}
	if told := meanings[f.of.String()+"."+name]; told != "" {
		j.told[f.of.String()+"."+name] = true
		return told
	}
	text := strings.TrimSuffix(strings.Join(strings.Fields(j.comments[f.of][f.Name]), " "), ".")
	for _, verb := range []string{" is ", " are "} {
		text = strings.TrimPrefix(text, f.Name+verb)
	}
	for other := range jsonFields(f.of) {
		if other.Name != "OK" && strings.ToUpper(other.Name) == other.Name {
			continue // an abbreviation, such as MAC
		}
		name, _, _ := strings.Cut(other.Tag.Get("json"), ",")
		text = regexp.MustCompile(`(^|[^.] )`+other.Name+`\b`).ReplaceAllString(text, "$1`"+name+"`")
	}
	text = strings.TrimSuffix(regexp.MustCompile(`\bnil\b`).ReplaceAllString(text, "none"), "; none for none")
	for _, key := range []string{f.of.String() + "." + name, name} {
		if text == "" && usual[key] != "" {
			j.told[key] = true
			return usual[key]
		}
	}
	return text
}

// fieldComments reads the comments on the fields of a struct.
func fieldComments(t *testing.T, typ reflect.Type) map[string]string {
	t.Helper()
	if typ == reflect.TypeFor[nodes.InterfaceInfo]() {
		typ = reflect.TypeFor[fi.InterfaceInfo]() // which it is, field by field
	}
	const module = "github.com/xdpfab/xdpfab"
	folder, found := strings.CutPrefix(typ.PkgPath(), module)
	if typ.PkgPath() == "main" || strings.HasSuffix(folder, "/cmd/xdpfab") {
		folder, found = "/cmd/xdpfab", true
	}
	if !found || typ.Name() == "" {
		return map[string]string{}
	}
	paths, err := filepath.Glob("../../" + folder + "/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal(err, folder)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if all := commentsIn(file, typ.Name()); all != nil {
			return all
		}
	}
	t.Fatalf("no type %s in %s", typ.Name(), folder)
	return nil
}

func commentsIn(file *ast.File, name string) (all map[string]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is || spec.Name.Name != name {
			return true
		}
		s, is := spec.Type.(*ast.StructType)
		if !is {
			return true
		}
		all = map[string]string{}
		for _, f := range s.Fields.List {
			for _, n := range f.Names {
				all[n.Name] = f.Comment.Text()
				if f.Doc != nil {
					all[n.Name] = f.Doc.Text()
				}
			}
		}
		return false
	})
	return all
}
