// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/xdpfab/xdpfab/"

// imports lists which of our packages each may import, tests aside. A folder that is not
// listed may not exist: adding one is a decision about the architecture. The folders of
// examples count as one, since all are programs that import the same.
var imports = map[string][]string{
	"atomic":                {"internal/errno"},
	"mr":                    {"internal/errno"},
	"xsk":                   {"internal/errno", "internal/kernel"},
	"bpf":                   {"internal/errno", "internal/kernel"},
	"internal/errno":        {},
	"internal/trust":        {},
	"internal/kernel":       {},
	"internal/wire":         {},
	"internal/version":      {},
	"internal/layout":       {},
	"internal/session":      {"internal/wire"},
	"internal/waiting":      {"mr", "atomic"},
	"internal/memory":       {"internal/waiting", "internal/wire", "mr", "atomic"},
	"internal/matching":     {"internal/wire", "atomic"},
	"internal/executor":     {"internal/session", "internal/waiting", "internal/wire"},
	"internal/handler":      {"internal/progress", "internal/session", "internal/wire"},
	"internal/resident":     {"bpf", "internal/errno", "internal/kernel", "internal/process", "internal/session", "internal/trust", "internal/wire"},
	"internal/engine":       {"internal/session", "internal/wire", "mr"},
	"internal/death":        {},
	"internal/process":      {},
	"internal/share":        {"internal/death", "internal/engine", "internal/matching", "internal/session", "internal/wire", "mr"},
	"internal/progress":     {"internal/errno"},
	"internal/sharedav":     {"internal/errno"},
	"internal/dump":         {},
	"internal/route":        {"internal/wire", "internal/dump"},
	"internal/wakeup":       {},
	"internal/udpport":      {"internal/errno", "internal/wakeup", "internal/wire"},
	"internal/port":         {"xsk", "bpf", "internal/wakeup", "internal/wire", "internal/route", "internal/nic"},
	"internal/node":         {"internal/engine", "internal/errno", "internal/executor", "internal/memory", "internal/port", "internal/progress", "internal/session", "internal/share", "internal/wire", "mr", "xsk"},
	"internal/calls":        {"internal/engine", "internal/errno", "internal/handler", "internal/matching", "internal/memory", "internal/node", "internal/progress", "internal/wire", "mr", "atomic"},
	"internal/residence":    {"internal/engine", "internal/errno", "internal/executor", "internal/memory", "internal/node", "internal/port", "internal/resident", "internal/session", "internal/share", "internal/wire", "mr", "atomic"},
	"internal/udpnode":      {"bpf", "internal/engine", "internal/errno", "internal/nic", "internal/node", "internal/port", "internal/process", "internal/residence", "internal/share", "internal/udpport", "internal/wire", "xsk"},
	"internal/guest":        {"internal/engine", "internal/errno", "internal/node", "internal/port", "internal/process", "internal/session", "internal/share", "internal/wire", "mr"},
	"internal/host":         {"bpf", "internal/death", "internal/engine", "internal/errno", "internal/executor", "internal/matching", "internal/memory", "internal/node", "internal/port", "internal/residence", "internal/resident", "internal/session", "internal/share", "internal/udpnode", "internal/wire", "mr", "xsk"},
	"xdpfab/fi":             {"bpf", "internal/udpnode", "internal/calls", "internal/guest", "internal/residence", "internal/node", "internal/death", "internal/engine", "internal/errno", "internal/executor", "internal/handler", "internal/matching", "internal/memory", "internal/progress", "internal/resident", "internal/session", "internal/share", "internal/sharedav", "internal/wire", "internal/port", "internal/nic", "xsk", "mr", "atomic"},
	"xdpfab":                {"xdpfab/directory", "xdpfab/fi", "internal/calls", "internal/engine", "internal/errno", "internal/matching", "internal/memory", "internal/node", "internal/port", "internal/waiting", "internal/wire", "mr", "atomic"},
	"xdpfab/sync":           {"xdpfab", "internal/errno", "atomic"},
	"xdpfab/directory":      {"internal/errno", "internal/wire"},
	"xdpfab/directory/etcd": {"xdpfab/directory"},
	"internal/testnet/veth": {"internal/dump"},
	"internal/testnet":      {"internal/testnet/veth", "internal/kernel"},

	"internal/testnet/census": {"internal/dump"},
	"internal/fabrictest":     {"internal/calls", "internal/guest", "internal/host", "internal/node", "internal/share", "internal/testnet", "internal/udpnode", "internal/udpport", "mr", "xdpfab", "xdpfab/fi"},

	"internal/testnet/faultwire": {"internal/testnet", "internal/testnet/veth", "xsk"},
	"internal/testnet/lockstep":  {},
	"internal/nic":               {"xsk", "bpf", "internal/errno", "internal/wire", "internal/kernel", "internal/dump", "internal/process", "internal/route"},
	"internal/advise":            {"internal/nic"},
	"internal/diagnose":          {"internal/calls", "internal/control", "internal/nic", "internal/port", "internal/process", "internal/route", "internal/tell", "internal/wire", "mr", "xdpfab", "xdpfab/fi"},
	"internal/tell":              {"internal/errno"},
	"internal/capture":           {"internal/wire"},
	"internal/control":           {"internal/capture", "internal/errno", "internal/host", "internal/node", "internal/process", "internal/share", "internal/trust"},
	"cmd/xdpfabd":                {"bpf", "internal/capture", "internal/control", "internal/death", "internal/host", "internal/nic", "internal/node", "internal/process", "internal/resident", "internal/share", "internal/tell", "internal/trust", "internal/udpnode", "internal/version", "internal/wire", "mr", "xdpfab/directory", "xdpfab/directory/etcd", "xsk"},
	"cmd/xdpfab":                 {"*"},
	"cmd/xdpfab/value":           {"atomic"},
	"cmd/xdpfab/show":            {"internal/tell"},
	"cmd/xdpfab/bench":           {"cmd/xdpfab/show", "cmd/xdpfab/value", "internal/histogram", "internal/load", "internal/tell", "atomic", "xdpfab", "xdpfab/fi"},
	"cmd/xdpfab/names":           {"xdpfab/directory", "xdpfab/directory/etcd"},
	"cmd/xdpfab/settings":        {"internal/tell", "xdpfab/directory"},
	"cmd/xdpfab/way":             {"internal/control", "internal/wire"},
	"internal/histogram":         {},
	"internal/load":              {"internal/histogram", "xdpfab", "xdpfab/fi", "atomic", "mr"},
	"internal/sim":               {"internal/engine", "internal/executor", "internal/matching", "internal/memory", "internal/session", "internal/share", "internal/wire", "mr", "atomic"},
	"examples":                   {"xdpfab", "xdpfab/fi", "xdpfab/sync", "mr", "atomic", "internal/testnet", "examples/start", "examples/try", "examples/internal/tutorial/limiter"},
	"test/e2e":                   {"*"},
	"test/e2e/recipes":           {"xdpfab"},
	"test/soak":                  {"*"},
	"test/vm":                    {"internal/testnet", "internal/testnet/census", "test/vm/guest"},
	"test/vm/guest":              {"internal/testnet/census"},
	"test/vm/feature":            {},
	"test/vm/topology":           {},
	"test/vm/cmd/vminit":         {"test/vm/guest"},
	"test/vm/cmd/vmtest":         {"test/vm"},
	"bench":                      {"bench/measure", "internal/histogram", "internal/testnet/veth", "internal/control"},
	"bench/measure":              {"internal/histogram"},
	"bench/worker":               {"bench/measure", "internal/load", "internal/control", "internal/host", "internal/node", "xdpfab", "xdpfab/fi", "mr"},
	"bench/parts":                {"bench/measure", "internal/histogram", "atomic", "xdpfab", "xdpfab/fi", "xdpfab/sync"},
	"bench/peers/plain":          {"bench/measure", "internal/histogram"},
}

// external lists which modules the library packages may depend on; commands and test
// tools may take more.
var external = map[string][]string{
	"atomic":             {"golang.org/x/sys/cpu"},
	"mr":                 {"golang.org/x/sys/unix"},
	"xsk":                {"golang.org/x/sys/unix"},
	"bpf":                {"github.com/cilium/ebpf", "golang.org/x/sys/unix"},
	"internal/errno":     {"golang.org/x/sys/unix"},
	"internal/wire":      {"golang.org/x/sys/cpu"},
	"internal/session":   {},
	"internal/memory":    {},
	"internal/matching":  {},
	"internal/executor":  {},
	"internal/handler":   {},
	"internal/resident":  {"github.com/cilium/ebpf", "github.com/cilium/ebpf/ringbuf", "golang.org/x/sys/unix"},
	"internal/engine":    {},
	"internal/progress":  {"golang.org/x/sys/unix"},
	"internal/share":     {"golang.org/x/sys/unix"},
	"internal/death":     {"golang.org/x/sys/unix"},
	"internal/process":   {"golang.org/x/sys/unix"},
	"internal/guest":     {"golang.org/x/sys/unix"},
	"internal/sharedav":  {"golang.org/x/sys/unix"},
	"internal/dump":      {"github.com/vishvananda/netlink"},
	"internal/route":     {"github.com/vishvananda/netlink", "golang.org/x/sys/unix"},
	"internal/kernel":    {"golang.org/x/sys/unix"},
	"internal/wakeup":    {"golang.org/x/sys/unix"},
	"internal/udpport":   {"golang.org/x/sys/unix"},
	"internal/port":      {"github.com/vishvananda/netlink", "golang.org/x/sys/unix"},
	"internal/node":      {"golang.org/x/sys/unix"},
	"internal/calls":     {},
	"internal/residence": {},
	"internal/trust":     {},
	"internal/udpnode":   {},
	"internal/waiting":   {},
	"internal/nic":       {"github.com/vishvananda/netlink", "golang.org/x/sys/unix"},
	"xdpfab/fi":          {},
	"xdpfab":             {},
	"xdpfab/sync":        {},
	"xdpfab/directory":   {},

	"xdpfab/directory/etcd": {"go.etcd.io/etcd/client/v3", "go.uber.org/zap", "google.golang.org/grpc"},
}

// Whatever the library imports on some way has a list in external, so that a program
// which imports the library compiles no other module than these.
func TestLibraryDependsOnListed(t *testing.T) {
	seen := map[string]bool{}
	var visit func(by, dir string)
	visit = func(by, dir string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		if _, listed := external[dir]; !listed {
			t.Errorf("%s imports %s, which is not in external: list the modules that it may depend on", by, dir)
		}
		for _, next := range imports[dir] {
			visit(dir, next)
		}
	}
	for _, dir := range public {
		visit("a program", dir)
	}
}

// unsafeFiles are the only files that may import unsafe, by base name.
var unsafeFiles = []string{"unsafe.go", "native_amd64.go", "native_arm64.go", "native_other.go"}

// sources calls f for every Go file of the module that is written by hand.
func sources(t *testing.T, f func(dir, path string, src []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || d.Name() == "tools") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "_bpfel.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		f(filepath.ToSlash(filepath.Dir(rel)), filepath.ToSlash(rel), src)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportsPointOneWay(t *testing.T) {
	files := 0
	sources(t, func(dir, path string, src []byte) {
		files++
		name, isExample := strings.CutPrefix(dir, "examples/")
		if isExample && name != "try" && !strings.HasPrefix(name, "internal/") && strings.Contains(string(src), "xdpfab/internal/") {
			t.Errorf("%s: a copy of the example in another module cannot import internal packages: want examples/try", path)
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		if strings.HasPrefix(dir, "examples/") {
			dir = "examples"
		}
		allowed, ok := imports[dir]
		if !ok {
			t.Errorf("%s: folder %q is not in the architecture: add it to ARCHITECTURE.md and to this test", path, dir)
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			checkImport(t, dir, path, name, allowed)
		}
	})
	if files < 50 {
		t.Errorf("only %d files looked at", files)
	}
}

func checkImport(t *testing.T, dir, path, name string, allowed []string) {
	t.Helper()
	if ours, ok := strings.CutPrefix(name, module); ok {
		if !slices.Contains(allowed, ours) && !slices.Contains(allowed, "*") {
			t.Errorf("%s imports %s: imports point one way, see ARCHITECTURE.md", path, ours)
		}
		return
	}
	if mods, limited := external[dir]; limited && strings.Contains(name, ".") {
		if !slices.ContainsFunc(mods, func(m string) bool { return name == m || strings.HasPrefix(name, m+"/") }) {
			t.Errorf("%s imports %s: the library packages depend on %v alone", path, name, mods)
		}
	}
	if name == "unsafe" && !slices.Contains(unsafeFiles, filepath.Base(path)) {
		t.Errorf("%s imports unsafe: only %v may", path, unsafeFiles)
	}
}

// A package is small enough to be known by its files, and what it shows to be read in one
// sitting.
func TestPackagesAreSmall(t *testing.T) {
	const most, mostLines = 65, 800 // files that are not tests; lines of api
	files := map[string]int{}
	sources(t, func(dir, path string, _ []byte) {
		if !strings.HasSuffix(path, "_test.go") {
			files[dir]++
		}
	})
	for dir, n := range files {
		if n > most {
			t.Errorf("%s has %d files, want at most %d: join those that are one idea, or make a package", dir, n, most)
		}
	}
	for _, name := range public {
		lines, err := surfaceOf(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(lines); n > mostLines {
			t.Errorf("%s exports %d lines of api, want at most %d: remove what says nothing of its own", name, n, mostLines)
		}
	}
}

func TestFilesAreLicensedAndShort(t *testing.T) {
	const most = 400 // lines of a file that is not a test
	sources(t, func(_, path string, src []byte) {
		if !strings.HasPrefix(string(src), "// SPDX-License-Identifier: Apache-2.0\n") {
			t.Errorf("%s: the first line does not name the licence", path)
		}
		if n := strings.Count(string(src), "\n"); n > most && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s: %d lines, want at most %d: one idea a file", path, n, most)
		}
	})
}
