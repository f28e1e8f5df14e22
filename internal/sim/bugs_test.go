// SPDX-License-Identifier: Apache-2.0

//go:build simbugs

package sim

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// sources are the packages that a run of the simulator is built from.
var sources = []string{"go.mod", "go.sum", "atomic", "mr", "internal/errno", "internal/wire", "internal/session", "internal/executor", "internal/memory", "internal/matching", "internal/engine", "internal/death", "internal/share", "internal/sim"}

// mostSeeds is how many seeds a bug may survive before it is found.
const mostSeeds = "2000"

var numberOf = regexp.MustCompile(`\(number (\d+)\)`)

// TestSeededBugs sows one bug at a time into a copy of the sources and lets the
// simulator find it. An unharmed copy must pass.
func TestSeededBugs(t *testing.T) {
	dir := t.TempDir()
	for _, s := range sources {
		copyTree(t, filepath.Join("..", "..", s), filepath.Join(dir, s))
	}
	// The tests of many nodes take package xsk, which is not in the copy.
	models, err := filepath.Glob(filepath.Join(dir, "internal", "sim", "scale*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range models {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := simulate(dir, "TestSim$", "mended"); err != nil {
		t.Fatalf("the sources fail as they are:\n%s", tail(out))
	}
	for _, b := range slices.Concat(bugs, bugsOfTime, bugsOfPairs, bugsOfStaging, bugsOfOrder, bugsOfEvents, bugsOfCopies, bugsOfMessages, bugsOfTakeover, bugsOfProcesses, bugsOfAcks, bugsOfAttending, bugsOfLengths) {
		t.Run(b.name, func(t *testing.T) {
			undo := b.sow(t, dir)
			defer undo()
			tests := b.tests
			if tests == "" {
				tests = "TestSim$"
			}
			start := time.Now()
			out, err := simulate(dir, tests, cmp.Or(rare[b.name], "mended"))
			switch {
			case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
				t.Fatalf("the bug does not compile:\n%s", tail(out))
			case err == nil:
				t.Errorf("not found in %s seeds", mostSeeds)
			case numberOf.MatchString(out):
				t.Logf("found by seed number %s, %.1f s: %s", numberOf.FindStringSubmatch(out)[1],
					time.Since(start).Seconds(), firstFailure(out))
			default:
				t.Logf("found, %.1f s: %s", time.Since(start).Seconds(), firstFailure(out))
			}
		})
	}
}

// sow applies the bug's edits and returns how to take them back.
func (b *bug) sow(t *testing.T, dir string) (undo func()) {
	t.Helper()
	was := map[string][]byte{}
	for _, e := range b.edits {
		path := filepath.Join(dir, e.file)
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), e.old); n != 1 {
			t.Fatalf("%s: %q occurs %d times, want once: adapt the bug to the sources", e.file, e.old, n)
		}
		if was[path] == nil {
			was[path] = src
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(src), e.old, e.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for path, src := range was {
			if err := os.WriteFile(path, src, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// simulate runs the simulator's tests in a copy of the sources. Paths are
// trimmed so that copies share the build cache.
func simulate(dir, tests, with string) (string, error) {
	cmd := exec.Command("go", "test", "-trimpath", "-vet=off", "-count=1", "-timeout=300s", "-v", "-run", tests,
		"./internal/sim", "-args", "-seeds="+mostSeeds, "-with="+with)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// firstFailure returns the line that names the failure.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "_test.go:") || strings.HasPrefix(line, "panic:") {
			return strings.TrimSpace(line)[:min(len(strings.TrimSpace(line)), 200)]
		}
	}
	return tail(out)
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else {
		var b []byte
		if b, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, b, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
