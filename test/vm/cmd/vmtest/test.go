// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/test/vm"
)

// test builds the tests once and runs them in each kind of guest.
func test(ctx context.Context, c *command, out, errs io.Writer) error {
	begin := time.Now()
	g, err := goFlags(c.rest, c.set())
	if err != nil {
		return err
	}
	cache, err := vm.OpenCache(c.cache)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "xdpfab-vmtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tests, err := vm.BuildTests(c.arch, filepath.Join(dir, "test"), g.packages, g.tags)
	if err != nil {
		return err
	}
	if g.short {
		for i := range tests {
			tests[i].Args = vm.ArgsOf(c.set(), tests[i].Dir)
		}
	}
	programs := filepath.Join(dir, "bin")
	if err := vm.BuildPrograms(c.arch, programs); err != nil {
		return err
	}
	files, err := vm.Files(tests, programs)
	if err != nil {
		return err
	}
	fmt.Fprintf(errs, "vmtest: %d test binaries and the programs: built in %v\n", len(tests), since(begin))
	one := func(each guest, f func(vm.Event)) error {
		return c.testWith(ctx, cache, each, files, tests, g, errs, f)
	}
	report, table := &vm.Report{Out: out, Format: g.format}, &vm.Table{}
	for _, t := range tests {
		table.Packages = append(table.Packages, t.Package)
	}
	broken := c.testAll(c.atATime(len(tests)), one, report, table)
	err = c.conclude(broken, table, out, errs)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// conclude prints the table, or what it says of problems, and returns the error of the
// run: broken if there is no verdict at all, errFailed if there is any problem.
func (c *command) conclude(broken error, table *vm.Table, out, errs io.Writer) error {
	problems := table.Problems()
	if c.table {
		fmt.Fprintln(out)
		table.Print(out)
	} else {
		for _, p := range problems {
			fmt.Fprintln(errs, "vmtest:", p)
		}
	}
	if broken != nil && table.Empty() {
		return broken
	}
	if len(problems) > 0 {
		return errFailed
	}
	return nil
}

// since is the time since begin, for people.
func since(begin time.Time) time.Duration { return time.Since(begin).Round(100 * time.Millisecond) }

// share is how many machines of one kind share the packages. Kinds that keep all cores
// busy by themselves have one each, so that each kernel is booted once.
func (c *command) share(a vm.Accel, packages int) int {
	switch {
	case c.machines > 0:
		return c.machines
	case len(c.guests) >= runtime.NumCPU():
		return 1
	}
	return vm.Machines(a, packages)
}

// atATime is how many kinds of guests are tested at the same time: as many as leave each
// of their machines a core of the host.
func (c *command) atATime(packages int) int {
	return min(len(c.guests), max(1, runtime.NumCPU()/c.share(vm.TCG, packages)))
}

// testAll tests with every kind of guest, several at a time; then the events of each are
// passed on together at its end. If one cannot be tested to the end, the others are
// tested all the same; the error is those of all.
func (c *command) testAll(
	atATime int, one func(guest, func(vm.Event)) error, report *vm.Report, table *vm.Table,
) error {
	places := make(chan struct{}, atATime)
	var passing sync.Mutex // to the report, the table and broken
	var broken []error
	var wg sync.WaitGroup
	for _, each := range c.guests {
		table.Column(each.name)
	}
	for _, each := range c.guests {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			pass := func(e vm.Event) {
				report.Event(e)
				table.Add(each.name, e)
			}
			var kept []vm.Event
			f := pass
			if atATime > 1 {
				f = func(e vm.Event) { kept = append(kept, e) }
			}
			err := one(each, f)
			passing.Lock()
			defer passing.Unlock()
			for _, e := range kept {
				pass(e)
			}
			if err != nil {
				table.Broken(each.name, err)
				broken = append(broken, fmt.Errorf("%s: %w", each.name, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(broken...)
}

// testWith runs the tests in machines of one kind, and prints how long each part took.
func (c *command) testWith(
	ctx context.Context, cache *vm.Cache, each guest, files map[string]string, tests []vm.Test, g *goTest,
	errs io.Writer, f func(vm.Event),
) error {
	say := func(format string, args ...any) {
		fmt.Fprintf(errs, "vmtest: %s: "+format+"\n", append([]any{each.name}, args...)...)
	}
	begin := time.Now()
	config, why, err := c.prepare(ctx, cache, each, files)
	if err != nil {
		return err
	}
	say("Linux %s on %s under %s: %s; found in %v",
		config.Image.Kernel.Release, c.arch.Name, config.Accel, why, since(begin))
	begin = time.Now()
	machines, err := vm.StartAll(ctx, config, c.share(config.Accel, len(tests)), func(m string) { say("%s", m) })
	if err != nil {
		return err
	}
	defer vm.CloseAll(machines)
	for _, m := range machines {
		say("the guest answered after %v: %d CPUs, %d MiB free",
			m.Booted.Round(time.Millisecond), m.Hello.CPUs, m.Hello.Memory>>20)
		if want := config.Image.Kernel.Release; m.Hello.Release != want {
			return fmt.Errorf("the guest runs Linux %s, want %s", m.Hello.Release, want)
		}
	}
	booted := since(begin)
	begin = time.Now()
	err = vm.RunTests(ctx, machines, tests, g.args, g.timeout, f)
	cpu := time.Duration(0)
	for _, m := range machines {
		cpu += m.CPU()
	}
	say("booted in %v, tested in %v; %v of CPU time in all", booted, since(begin), cpu.Round(100*time.Millisecond))
	return err
}
