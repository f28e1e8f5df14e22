// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The places of files in a guest.
const (
	guestTests    = "/vm/test"   // test binaries
	guestPrograms = "/vm/bin"    // the project's commands
	guestSource   = "/vm/xdpfab" // the module's files, as tests read some
	sourceLimit   = 1 << 20      // bytes; larger files stay out
	testSuffix    = ".test"      // of a test binary's name
)

// DefaultKernel is the kernel when none is chosen: that of Debian's stable
// release.
const DefaultKernel = "6.12"

// Test is a test binary, and where it runs.
type Test struct {
	Package string   // import path
	Dir     string   // of its source, below the module's root
	Binary  string   // path on the host
	Args    []string // of the binary, before those of the run
}

// guestBinary is the binary's path in the guest.
func (t *Test) guestBinary() string { return guestTests + "/" + filepath.ToSlash(t.Dir) + testSuffix }

// BuildTests builds the test binaries of the packages that match the patterns into
// a folder, for an architecture. Packages without tests are left out.
func BuildTests(a *Arch, to string, patterns []string, tags string) (tests []Test, err error) {
	flags := []string{"-tags=" + tags}
	out, err := goTool(a, append(append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, flags...),
		patterns...)...)
	if err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			tests = append(tests, Test{Package: p.ImportPath, Dir: dir})
		}
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no tests in %s", strings.Join(patterns, " "))
	}
	return tests, compileTests(a, to, tests, flags)
}

// compileTests fills in the binaries. One call of the go command compiles many
// packages side by side, but not two whose binaries have the same name, so these go
// into different rounds.
func compileTests(a *Arch, to string, tests []Test, flags []string) error {
	var rounds [][]string     // import paths
	named := map[string]int{} // how many binaries have this name
	for i := range tests {
		t := &tests[i]
		name := path.Base(t.Package) + testSuffix
		round := named[name]
		named[name]++
		if round == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], t.Package)
		t.Binary = filepath.Join(to, strconv.Itoa(round), name)
	}
	for i, packages := range rounds {
		dir := filepath.Join(to, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if _, err := goTool(a, append(append([]string{"test", "-c", strip, "-o", dir + "/"}, flags...),
			packages...)...); err != nil {
			return err
		}
	}
	return nil
}

// BuildPrograms builds the project's commands into a folder, for an architecture.
func BuildPrograms(a *Arch, to string) error {
	return goBuild(a, to+"/", "./cmd/...")
}

// Given returns a test binary that was built elsewhere, to be run as if in a
// folder of this module.
func Given(binary, dir string) (*Test, error) {
	if dynamic, err := isDynamic(binary); err != nil {
		return nil, fmt.Errorf("test binary: %w", err)
	} else if dynamic {
		return nil,
			fmt.Errorf("%s needs shared libraries, which the guest has not: build it with CGO_ENABLED=0", binary)
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s is not inside of %s", dir, root)
	}
	return &Test{Package: rel, Dir: rel, Binary: binary}, nil
}

// Files returns the files that a guest needs to run tests: the binaries, the
// commands, and the module's source, in whose folders the tests run.
func Files(tests []Test, programs string) (map[string]string, error) {
	files := map[string]string{guestPrograms: programs}
	for i := range tests {
		files[tests[i].guestBinary()] = tests[i].Binary
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || rel == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() && info.Size() <= sourceLimit {
			files[guestSource+"/"+filepath.ToSlash(rel)] = path
		}
		return nil
	})
	return files, err
}

// testEnv is the environment of tests in the guest.
func (m *Machine) testEnv() []string {
	env := []string{testnet.ProgramsEnv + "=" + guestPrograms, testnet.VMEnv + "=1"}
	if m.Accel == TCG {
		env = append(env, testnet.SlowEnv+"=3") // ten times slower, and often less than half busy
	}
	return append(env, m.nic.env()...)
}
