// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/test/vm"
)

// Whatever way a test binary ends other than by passing, its package has failed; so has
// each for which no machine is left. One machine runs the packages in this order.
func TestEveryEndIsAVerdict(t *testing.T) {
	if !*boots {
		t.Skip("boots virtual machines: make test-vm-self")
	}
	const dir = "test/vm/cmd/vmtest/testdata/"
	packages := []struct{ name, verdict, why string }{
		{"panics", "failed", "exit code 2"},
		{"exits", "failed", "exit code 3"},
		{"exitslate", "failed", "exit code 4"},
		{"killed", "failed", "signal killed"},
		{"hangs", "failed", "test timed out after 30s"},
		{"passes", "", ""},
		{"skips", "failed", "nothing was tested: all 2 tests were skipped"},
		{"dies", "failed", "the guest's kernel panicked"},
		{"lacks", "not run", ""},
	}
	args := []string{"-machines", "1", "-table", "-kernel", vm.DefaultKernel, "--"}
	for _, p := range packages {
		args = append(args, "./"+dir+p.name)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), append(args, "-timeout", "30s"), &out, &errs)
	text := out.String()
	t.Logf("%s%s", text, &errs)
	if code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if want := "packages passed  1 of 9\n"; !strings.Contains(text, want) {
		t.Errorf("the table lacks %q", want)
	}
	for _, p := range packages {
		path := "github.com/xdpfab/xdpfab/" + dir + p.name
		passed := strings.Contains(text, "ok  \t"+path+"\t")
		problem := strings.Contains(text, p.verdict+": "+vm.DefaultKernel+": "+path+"\n")
		if passed != (p.verdict == "") || p.verdict != "" && !problem || !strings.Contains(text, p.why) {
			t.Errorf("%s: passed %v, in the list of problems as %q %v; want that list to have it unless it passes, and %q",
				p.name, passed, p.verdict, problem, p.why)
		}
	}
}

// guestsThat returns what testAll takes: kinds of guests with their verdicts on package
// p, "" for none, and their ends.
func guestsThat(verdicts map[string]string, ends map[string]error) (*command, func(guest, func(vm.Event)) error) {
	c := &command{}
	for name := range verdicts {
		c.guests = append(c.guests, guest{name: name})
	}
	slices.SortFunc(c.guests, func(a, b guest) int { return strings.Compare(a.name, b.name) })
	return c, func(g guest, f func(vm.Event)) error {
		if v := verdicts[g.name]; v != "" {
			f(vm.Event{Action: "run", Package: "p", Test: "Test"})
			f(vm.Event{Action: v, Package: "p"})
		}
		return ends[g.name]
	}
}

// The error of a run, and so its exit code, follows from the verdicts that are owed.
func TestConclude(t *testing.T) {
	boot := errors.New("no boot")
	for name, test := range map[string]struct {
		verdicts map[string]string
		ends     map[string]error
		want     error
		says     []string
	}{
		"passed":           {map[string]string{"a": "pass", "b": "pass"}, nil, nil, nil},
		"failed":           {map[string]string{"a": "pass", "b": "fail"}, nil, errFailed, []string{"failed: b: p"}},
		"silent":           {map[string]string{"a": "pass", "b": ""}, nil, errFailed, []string{"not run: b: p"}},
		"all silent":       {map[string]string{"a": "", "b": ""}, nil, errFailed, []string{"not run: a: p", "not run: b: p"}},
		"one did not boot": {map[string]string{"a": "pass", "b": ""}, map[string]error{"b": boot}, errFailed, []string{"not run: b: p", "to the end: b: no boot"}},
		"no boot":          {map[string]string{"a": ""}, map[string]error{"a": boot}, boot, []string{"not run: a: p"}},
		"ended badly":      {map[string]string{"a": "pass"}, map[string]error{"a": boot}, errFailed, []string{"to the end: a: no boot"}},
	} {
		for _, atATime := range []int{1, 2} {
			c, one := guestsThat(test.verdicts, test.ends)
			var out, errs bytes.Buffer
			table := &vm.Table{Packages: []string{"p"}}
			broken := c.testAll(atATime, one, &vm.Report{Out: &out}, table)
			if err := c.conclude(broken, table, &out, &errs); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
			for _, w := range test.says {
				if !strings.Contains(errs.String(), w) {
					t.Errorf("%s: %q lacks %q", name, &errs, w)
				}
			}
		}
	}
}

// Machines and kinds of guests at a time keep every core busy, and no more.
func TestShare(t *testing.T) {
	cores := runtime.NumCPU()
	for _, test := range []struct{ guests, machines, share, atATime int }{
		{1, 0, min(cores, 4), 1}, {cores, 0, 1, cores}, {2 * cores, 0, 1, cores}, {1, 3, 3, 1}, {2 * cores, 2 * cores, 2 * cores, 1},
	} {
		if test.guests == cores && cores == 1 {
			continue // the first line
		}
		c := &command{machines: test.machines, guests: make([]guest, test.guests)}
		if share, atATime := c.share(vm.TCG, 9), c.atATime(9); share != test.share || atATime != test.atATime {
			t.Errorf("%+v: %d machines for each of %d kinds at a time", test, share, atATime)
		}
	}
}
