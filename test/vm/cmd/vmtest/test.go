// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/test/vm"
)

// nicTimeout is the least timeout of a package on NICs. Each Open takes seconds, and the
// virtual NICs of several queues work in QEMU's only thread.
const nicTimeout = 60 * time.Minute

// foreignTimeout is the same for a guest of another architecture than the host's, of
// which each instruction is translated.
const foreignTimeout = 60 * time.Minute

// test builds the tests once and runs them in each kind of guest.
func test(ctx context.Context, c *command, out, errs io.Writer) error {
	g, err := goFlags(c.rest, c.set())
	if err != nil {
		return err
	}
	if c.guests[0].nic != nil {
		g.timeout = max(g.timeout, nicTimeout)
	}
	if !c.arch.Native() {
		g.timeout = max(g.timeout, foreignTimeout)
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
	report := &vm.Report{Out: out, Format: g.format}
	var table vm.Table
	one := func(each guest, f func(vm.Event)) error {
		begin := time.Now()
		err := c.testWith(ctx, cache, each, files, tests, g, errs, f)
		fmt.Fprintf(errs, "vmtest: %s took %v\n", each.name, time.Since(begin).Round(time.Second))
		return err
	}
	err = c.testAll(c.atATime(len(tests)), one, errs, report, &table)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if c.table {
		fmt.Fprintln(out)
		table.Print(out)
	}
	if report.Failed() || table.Failed() {
		return errFailed
	}
	return nil
}

// atATime is how many kinds of guests are tested at the same time: as many as leave each
// of their machines a core of the host.
func (c *command) atATime(packages int) int {
	machines := c.machines
	if machines == 0 {
		machines = vm.Machines(vm.TCG, packages)
	}
	return min(len(c.guests), max(1, runtime.NumCPU()/machines))
}

// testAll tests with every kind of guest, several at a time; then the events of each are
// passed on together at its end. If one cannot be tested, the others are tested all the
// same; the error is that of the only one.
func (c *command) testAll(atATime int, one func(guest, func(vm.Event)) error, errs io.Writer, report *vm.Report, table *vm.Table) (broken error) {
	places := make(chan struct{}, atATime)
	var passing sync.Mutex // to the report and the table
	var wg sync.WaitGroup
	for _, each := range c.guests {
		table.Column(each.name)
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
			if err == nil {
				return
			}
			table.Broken(each.name, err)
			if len(c.guests) == 1 && !report.Failed() {
				broken = err
				return
			}
			line, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(errs, "vmtest: %s: %v\n", each.name, line)
		})
	}
	wg.Wait()
	return broken
}

// testWith runs the tests in machines of one kind.
func (c *command) testWith(ctx context.Context, cache *vm.Cache, each guest, files map[string]string, tests []vm.Test, g *goTest, errs io.Writer, f func(vm.Event)) error {
	config, err := c.prepare(ctx, cache, each, files, errs)
	if err != nil {
		return err
	}
	n := c.machines
	if n == 0 {
		n = vm.Machines(config.Accel, len(tests))
	}
	machines, err := vm.StartAll(ctx, config, n)
	if err != nil {
		return err
	}
	defer vm.CloseAll(machines)
	for _, m := range machines {
		fmt.Fprintf(errs, "vmtest: %s: the guest answered after %v: %d CPUs, %d MiB free\n", each.name, m.Booted.Round(time.Millisecond), m.Hello.CPUs, m.Hello.Memory>>20)
		if want := config.Image.Kernel.Release; m.Hello.Release != want {
			return fmt.Errorf("the guest runs Linux %s, want %s", m.Hello.Release, want)
		}
	}
	return vm.RunTests(ctx, machines, tests, g.args, g.timeout, f)
}
