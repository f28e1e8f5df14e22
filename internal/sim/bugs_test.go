// SPDX-License-Identifier: Apache-2.0

//go:build simbugs

package sim

import (
	"cmp"
	"fmt"
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
var sources = []string{"go.mod", "go.sum", "atomic", "mr", "internal/errno", "internal/wire", "internal/session", "internal/waiting", "internal/executor", "internal/memory", "internal/matching", "internal/engine", "internal/death", "internal/share", "internal/sim"}

// mostSeeds is how many seeds a bug may survive before it is found.
const mostSeeds = "2000"

// mostTime is for how long runs begin that look for a bug. A run that has begun may take
// as long again: one that has not ended by then never does.
const mostTime = 5 * time.Minute

var (
	numberOf = regexp.MustCompile(`\(number (\d+)\)`)
	runsOf   = regexp.MustCompile(`, (\d+) runs`)
)

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
	if out, err := simulate(dir, "TestSim$", "mended", 1); err != nil {
		t.Fatalf("the sources fail as they are:\n%s", tail(out))
	}
	for _, b := range slices.Concat(bugs, bugsOfTime, bugsOfPairs, bugsOfStaging, bugsOfOrder, bugsOfEvents, bugsOfCopies, bugsOfMessages, bugsOfTakeover, bugsOfProcesses, bugsOfAcks, bugsOfAttending, bugsOfCalls, bugsOfWaits, bugsOfLengths) {
		t.Run(b.name, func(t *testing.T) {
			undo := b.sow(t, dir)
			defer undo()
			tests := b.tests
			if tests == "" {
				tests = "TestSim$"
			}
			own := findings[b.name]
			start := time.Now()
			out, err := simulate(dir, tests, cmp.Or(rare[b.name], "mended"), max(own.seed, 1))
			took := time.Since(start).Seconds()
			switch {
			case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
				t.Fatalf("the bug does not compile:\n%s", tail(out))
			case strings.Contains(out, "panic: test timed out") && !strings.Contains(out, "--- FAIL: "):
				t.Errorf("not found: a run did not end in %.1f s, which is no finding:\n%s", took, tail(out))
			case err == nil && runsOf.MatchString(out):
				t.Errorf("not found in %s runs, %.1f s", runsOf.FindStringSubmatch(out)[1], took)
			case err == nil:
				t.Errorf("not found, %.1f s", took)
			case !strings.Contains(out, own.says):
				t.Errorf("found by another rule than that which says %q, %.1f s: %s", own.says, took, firstFailure(out))
			case numberOf.MatchString(out):
				t.Logf("found by run number %s, %.1f s: %s", numberOf.FindStringSubmatch(out)[1], took, firstFailure(out))
			default:
				t.Logf("found, %.1f s: %s", took, firstFailure(out))
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
func simulate(dir, tests, with string, first uint64) (string, error) {
	cmd := exec.Command("go", "test", "-trimpath", "-vet=off", "-count=1", "-failfast",
		"-timeout", (2 * mostTime).String(), "-v", "-run", tests, "./internal/sim", "-args",
		"-seeds="+mostSeeds, "-with="+with, "-for="+mostTime.String(),
		fmt.Sprint("-first=", first))
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
