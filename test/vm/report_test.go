// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const featurePackage = "github.com/xdpfab/xdpfab/test/vm/feature"

// said is the output of a test binary as events, and its last word.
func said(t *testing.T, pkg, output string) (all []Event, verdict string) {
	t.Helper()
	c, err := newConverter(pkg, func(e Event) { all = append(all, e) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(output)); err != nil {
		t.Fatal(err)
	}
	if verdict, err = c.finish(); err != nil {
		t.Fatal(err)
	}
	return all, verdict
}

// events are a package that passes, with a skip, and one that fails.
func events(t *testing.T) (all []Event) {
	t.Helper()
	for pkg, output := range map[string]string{
		featurePackage: "=== RUN   TestFeature\n=== RUN   TestFeature/old\n=== RUN   TestFeature/new\n    feature_test.go:50: too old\n" +
			"--- PASS: TestFeature (0.01s)\n    --- PASS: TestFeature/old (0.00s)\n    --- SKIP: TestFeature/new (0.00s)\nPASS\n",
		"p/bad": "=== RUN   TestGood\nquiet\n--- PASS: TestGood (0.00s)\n=== RUN   TestBad\n    bad_test.go:1: wrong\n--- FAIL: TestBad (0.00s)\nFAIL\n",
	} {
		part, verdict := said(t, pkg, output)
		all = append(append(all, part...), Event{Action: verdict, Package: pkg})
	}
	return all
}

// A test binary has passed if it said PASS in the end, and its exit code agrees. The
// outputs are those of Go 1.26.
func TestJudge(t *testing.T) {
	const run = "\x16=== RUN   TestX\n"
	for name, c := range map[string]struct {
		output string
		code   int
		why    string // "" means that it passed
	}{
		"passed":           {run + "\x16--- PASS: TestX (0.00s)\n\x16PASS\n", 0, ""},
		"no tests":         {"testing: warning: no tests to run\n\x16PASS\n", 0, ""},
		"failed":           {run + "\x16--- FAIL: TestX (0.00s)\n\x16FAIL\n", 1, "exit status 1"},
		"panicked":         {run + "\x16--- FAIL: TestX (0.00s)\npanic: oh [recovered]\n", 2, "exit code 2"},
		"timed out":        {run + "panic: test timed out after 1s\n\trunning tests:\n\t\tTestX (1s)\n", 2, "exit code 2"},
		"exited":           {run, 3, "exit code 3"},
		"exited with 0":    {"", 0, "exit code 0"},
		"killed":           {run, 128 + 9, "signal killed"},
		"quit":             {run + "SIGQUIT: quit\nPC=0x1 m=0 sigcode=0\n", 2, "exit code 2"},
		"exited afterward": {run + "\x16--- PASS: TestX (0.00s)\n\x16PASS\n", 3, "said PASS and ended with exit code 3"},
		"died afterward":   {run + "\x16--- PASS: TestX (0.00s)\n\x16PASS\nfatal error: oh\n", 2, "exit code 2"},
		"claims no tests":  {"?   \tp\t[no test files]\n", 0, "neither PASS nor FAIL"},
		"no such flag":     {"flag provided but not defined: -test.x\nUsage of x.test:\n", 2, "exit code 2"},
	} {
		_, word := said(t, "p", c.output)
		if why := judge(word, c.code); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q; want %q", name, why, c.why)
		}
	}
}

// A package all of whose tests were skipped has shown nothing; a skipped subtest is part
// of a test that ran.
func TestTally(t *testing.T) {
	const (
		passes = "\x16=== RUN   TestA\n\x16=== RUN   TestA/b\n\x16--- PASS: TestA (0.00s)\n\x16    --- SKIP: TestA/b (0.00s)\n"
		skips  = "\x16=== RUN   TestC\n    c_test.go:1: not here\n\x16--- SKIP: TestC (0.00s)\n"
	)
	for name, c := range map[string]struct {
		output  string
		want    string
		nothing bool
	}{
		"none":       {"testing: warning: no tests to run\n", "tests: 0", false},
		"one passed": {passes, "tests: 1", false},
		"one of two": {passes + skips, "tests: 2, skipped: 1", false},
		"skipped":    {skips, "tests: 1, skipped: 1", true},
		"cut off":    {skips + "\x16=== RUN   TestD\npanic: oh\n", "tests: 2, skipped: 1", false},
	} {
		var tests tally
		all, _ := said(t, "p", c.output+"\x16PASS\n")
		for _, e := range all {
			tests.add(e)
		}
		if got := tests.String(); got != c.want || tests.nothing() != c.nothing {
			t.Errorf("%s: %s, nothing tested: %v; want %s, %v", name, got, tests.nothing(), c.want, c.nothing)
		}
	}
}

func TestReport(t *testing.T) {
	for format, want := range map[Format][]string{
		Plain:   {"ok  \t" + featurePackage, "bad_test.go:1: wrong", "--- FAIL: TestBad", "FAIL\tp/bad"},
		Verbose: {"=== RUN   TestGood", "quiet", "SKIP: TestFeature/new", "FAIL\tp/bad"},
		JSON:    {`{"Time":`, `"Action":"skip"`, `"Test":"TestFeature/new"`},
	} {
		var out bytes.Buffer
		r := &Report{Out: &out, Format: format}
		for _, e := range events(t) {
			r.Event(e)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("format %d lacks %q:\n%s", format, w, &out)
			}
		}
		if format == Plain && strings.Contains(out.String(), "quiet") {
			t.Errorf("format %d prints the output of a test that passed:\n%s", format, &out)
		}
	}
}

func TestTable(t *testing.T) {
	table := Table{Packages: []string{featurePackage, "p/bad"}}
	for _, e := range events(t) {
		table.Add("6.1", e)
	}
	table.Broken("sid", errors.New("it panicked\nat length"))
	want := []string{"failed: 6.1: p/bad", "not run: sid: " + featurePackage, "not run: sid: p/bad",
		"not tested to the end: sid: it panicked"}
	if got := table.Problems(); !slices.Equal(got, want) || table.Empty() {
		t.Errorf("problems: %q, want %q", got, want)
	}
	var out bytes.Buffer
	table.Print(&out)
	for _, w := range append(want, "feature          6.1      sid", "old              passed   not run",
		"new              skipped  not run",
		"packages passed  1 of 2   0 of 2", "skipped: 6.1, new: too old") {
		if !strings.Contains(out.String(), w+"\n") {
			t.Errorf("the table lacks %q:\n%s", w, &out)
		}
	}
}

// Each package and each feature that was begun owes a verdict: silence is a failure.
func TestTableWithoutVerdicts(t *testing.T) {
	begun := Event{Action: "run", Package: featurePackage, Test: "TestFeature/old"}
	other := Event{Action: "run", Package: featurePackage, Test: "TestOther"}
	pass := Event{Action: "pass", Package: featurePackage}
	for name, c := range map[string]struct {
		events []Event
		want   []string
	}{
		"no event":            {nil, []string{"not run: 6.1: " + featurePackage}},
		"no verdict":          {[]Event{begun}, []string{"not run: 6.1: " + featurePackage, "no verdict: 6.1: feature old"}},
		"none on the feature": {[]Event{begun, pass}, []string{"no verdict: 6.1: feature old"}},
		"no test":             {[]Event{pass}, []string{"no test ran: 6.1: is there one that -run names?"}},
		"no feature":          {[]Event{other, pass}, nil},
		"both":                {[]Event{begun, {Action: "skip", Package: featurePackage, Test: begun.Test}, pass}, nil},
	} {
		table := Table{Packages: []string{featurePackage}}
		table.Column("6.1")
		for _, e := range c.events {
			table.Add("6.1", e)
		}
		if got := table.Problems(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Packages for which no machine is left have no event, so that the table names them.
func TestPackagesWithoutAMachine(t *testing.T) {
	err := RunTests(t.Context(), nil, []Test{{Package: "p"}, {Package: "q"}}, nil, 0, func(e Event) { t.Errorf("%+v", e) })
	if err != nil {
		t.Error(err)
	}
}

// A guest is booted once more only if it was never heard of.
func TestAgain(t *testing.T) {
	silent := fmt.Errorf("%w: %w", errSpeechless, ErrPanic)
	for _, c := range []struct {
		results []error
		want    error
	}{
		{[]error{nil}, nil}, {[]error{silent, nil}, nil}, {[]error{silent, silent}, ErrPanic},
		{[]error{ErrMemory}, ErrMemory}, {[]error{ErrHang}, ErrHang},
	} {
		calls, told := 0, 0
		_, err := again(func() (*Machine, error) { calls++; return nil, c.results[calls-1] }, func(string) { told++ })
		if !errors.Is(err, c.want) || calls != len(c.results) || told != calls-1 {
			t.Errorf("%v: %v after %d calls, told %d times", c.results, err, calls, told)
		}
	}
}
