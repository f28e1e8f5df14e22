// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/test/vm"
)

// packageTimeout is for hangs alone. A guest may be translated by QEMU, on a host whose
// other work leaves it a quarter of a core, and its NICs work in QEMU's only thread.
const packageTimeout = 60 * time.Minute

// goTest is a command line of go test.
type goTest struct {
	packages []string
	short    bool // no package was named: the set
	tags     string
	format   vm.Format
	timeout  time.Duration // of a package
	args     []string      // of the test binaries
}

// Flags of go test that a test binary takes as -test.NAME.
var (
	valueFlags = []string{"run", "skip", "count", "parallel", "cpu", "shuffle", "bench", "benchtime"}
	boolFlags  = []string{"short", "failfast", "benchmem"}
)

// goFlags reads packages and flags, in any order, as go test does. Without a package it
// takes those of the set.
func goFlags(args []string, set []vm.Choice) (*goTest, error) {
	g := &goTest{timeout: packageTimeout}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			g.packages = append(g.packages, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		name = strings.TrimPrefix(name, "test.")
		switch {
		case name == "args":
			g.args, args = append(g.args, args...), nil
			continue
		case name == "" && len(arg) == 2: // "--" between two kinds of flags
			continue
		case name == "v":
			g.format = max(g.format, vm.Verbose)
			continue
		case name == "json":
			g.format = vm.JSON
			continue
		case slices.Contains(boolFlags, name):
			if !hasValue {
				value = "true"
			}
		case slices.Contains(valueFlags, name) || name == "tags" || name == "timeout":
			if !hasValue && len(args) == 0 {
				return nil, fmt.Errorf("-%s wants a value", name)
			}
			if !hasValue {
				value, args = args[0], args[1:]
			}
		default:
			return nil, fmt.Errorf("flag %s is none of go test's that work here: -v -json -tags -timeout -args -%s -%s",
				arg, strings.Join(boolFlags, " -"), strings.Join(valueFlags, " -"))
		}
		if err := g.set(name, value); err != nil {
			return nil, err
		}
	}
	if len(g.packages) == 0 {
		g.short = true
		for _, c := range set {
			g.packages = append(g.packages, "./"+c.Dir)
		}
	}
	return g, nil
}

func (g *goTest) set(name, value string) (err error) {
	switch name {
	case "tags":
		g.tags = value
	case "timeout":
		if g.timeout, err = time.ParseDuration(value); err != nil || g.timeout <= 0 {
			return fmt.Errorf("-timeout %s: want a time such as 5m: a guest does not run for ever", value)
		}
	default:
		g.args = append(g.args, "-test."+name+"="+value)
	}
	return nil
}
