// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const featurePackage = "github.com/xdpfab/xdpfab/test/vm/feature"

// events are a package that passes, with a skip, and one that fails.
func events(t *testing.T) (all []Event) {
	t.Helper()
	for pkg, output := range map[string]string{
		featurePackage: "=== RUN   TestFeature\n=== RUN   TestFeature/old\n=== RUN   TestFeature/new\n    feature_test.go:50: too old\n" +
			"--- PASS: TestFeature (0.01s)\n    --- PASS: TestFeature/old (0.00s)\n    --- SKIP: TestFeature/new (0.00s)\nPASS\n",
		"p/bad": "=== RUN   TestGood\nquiet\n--- PASS: TestGood (0.00s)\n=== RUN   TestBad\n    bad_test.go:1: wrong\n--- FAIL: TestBad (0.00s)\nFAIL\n",
	} {
		c, err := newConverter(pkg, func(e Event) { all = append(all, e) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(output)); err != nil {
			t.Fatal(err)
		}
		verdict, err := c.finish()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, verdict)
	}
	return all
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
		if !r.Failed() || format == Plain && strings.Contains(out.String(), "quiet") {
			t.Errorf("format %d: failed %v:\n%s", format, r.Failed(), &out)
		}
	}
}

func TestTable(t *testing.T) {
	var table Table
	for _, e := range events(t) {
		table.Add("6.1", e)
	}
	table.Broken("sid", errors.New("it panicked\nat length"))
	var out bytes.Buffer
	table.Print(&out)
	for _, w := range []string{"feature          6.1      sid", "old              passed   not run", "new              skipped  not run", "1 of 2",
		"skipped: 6.1, new: too old", "failed: 6.1: p/bad", "not tested to the end: sid: it panicked\n"} {
		if !strings.Contains(out.String(), w) {
			t.Errorf("the table lacks %q:\n%s", w, &out)
		}
	}
	if !table.Failed() {
		t.Error("nothing failed")
	}
}
