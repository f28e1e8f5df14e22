// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// ShortSet is tested when no packages are named. It holds arguments of go test: all
// tests that have to do with the kernel, except those that take QEMU's translator
// more than a few seconds and differ from the rest only in length.
var ShortSet = []string{
	"-short", "./xsk", "./bpf", "./internal/nic", "./internal/port", "./internal/route", "./internal/testnet/...",
	"./xdpfab", "./test/e2e", "./test/soak", "./test/vm/feature", "./test/vm/topology",
	"-skip", "^(" + strings.Join(long, "|") + ")$",
}

// long are the tests that ShortSet leaves out.
var long = []string{
	"TestNothingLeaks", "TestBothDirectionsManyLaps", // xsk
	"TestAgainstReference",                                                                           // bpf
	"TestParsersAgree", "TestReopenLeavesNothing", "TestQueueTaken", "TestMissingPrivilegesAreNamed", // internal/port
	"TestSilentNeighbour", "TestDoubtfulNeighbour", // internal/route
	"TestWaiterRecycledBeforeRaise", "TestVethManyNodes", "TestConcurrentCallers", "TestQueueFull", ".*DoesNotAllocate", // xdpfab
	"TestDemo.*", "TestMillionFetchAdds", "TestVectors", "TestIdle", "TestAtomic", "TestAtomicRefused", "TestMultiQueue",
	"TestListAndPing", "TestFaultyConfiguration", "TestTermUnderLoad", "TestKillUnderLoad", "TestRestarts", "TestClientSurvivesRestarts", // test/e2e
	"TestEachFault", "TestDaemonKilled", "TestRingsOverflow", "TestDaemonStalled", "TestClientsKilled", "TestLinearizable", "TestResolveAfterPartition", "TestCallsLeftEarly", // test/soak
}

// Test is a test binary, and where it runs.
type Test struct {
	Package string // import path
	Dir     string // of its source, below the module's root
	Binary  string // path on the host
}

// guestBinary is the binary's path in the guest.
func (t *Test) guestBinary() string { return guestTests + "/" + filepath.ToSlash(t.Dir) + testSuffix }

// BuildTests builds the test binaries of the packages that match the patterns into
// a folder. Packages without tests are left out.
func BuildTests(to string, patterns []string, tags string) (tests []Test, err error) {
	flags := []string{"-tags=" + tags}
	out, err := goTool(append(append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, flags...), patterns...)...)
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
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		t := Test{p.ImportPath, dir, filepath.Join(to, dir+testSuffix)}
		if err := os.MkdirAll(filepath.Dir(t.Binary), 0o755); err != nil {
			return nil, err
		}
		if _, err := goTool(append(append([]string{"test", "-c", strip, "-o", t.Binary}, flags...), p.ImportPath)...); err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no tests in %s", strings.Join(patterns, " "))
	}
	return tests, nil
}

// BuildPrograms builds the project's commands into a folder.
func BuildPrograms(to string) error {
	return goBuild(to+"/", "./cmd/...")
}

// Given returns a test binary that was built elsewhere, to be run as if in a
// folder of this module.
func Given(binary, dir string) (*Test, error) {
	if dynamic, err := isDynamic(binary); err != nil {
		return nil, fmt.Errorf("test binary: %w", err)
	} else if dynamic {
		return nil, fmt.Errorf("%s needs shared libraries, which the guest has not: build it with CGO_ENABLED=0", binary)
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
func testEnv() []string {
	return []string{testnet.ProgramsEnv + "=" + guestPrograms, testnet.VMEnv + "=1"}
}
