// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/test/vm"
)

// test builds the tests once and runs them with each kernel.
func test(ctx context.Context, c *command, out, errs io.Writer) error {
	g, err := goFlags(c.rest)
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
	tests, err := vm.BuildTests(filepath.Join(dir, "test"), g.packages, g.tags)
	if err != nil {
		return err
	}
	if g.short {
		for i := range tests {
			tests[i].Args = vm.ShortSetOf(tests[i].Dir)
		}
	}
	programs := filepath.Join(dir, "bin")
	if err := vm.BuildPrograms(programs); err != nil {
		return err
	}
	files, err := vm.Files(tests, programs)
	if err != nil {
		return err
	}
	report := &vm.Report{Out: out, Format: g.format}
	var table vm.Table
	for _, name := range c.kernels {
		begin := time.Now()
		err := c.testWith(ctx, cache, name, &vm.Config{Image: vm.Image{Files: files}}, tests, g, errs, func(e vm.Event) {
			report.Event(e)
			table.Add(name, e)
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// If one kernel cannot be tested, the others are tested all the
			// same.
			table.Broken(name, err)
			if len(c.kernels) == 1 && !report.Failed() {
				return err
			}
			line, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(errs, "vmtest: %s: %v\n", name, line)
		}
		fmt.Fprintf(errs, "vmtest: %s took %v\n", name, time.Since(begin).Round(time.Second))
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

// testWith runs the tests in machines with one kernel.
func (c *command) testWith(ctx context.Context, cache *vm.Cache, name string, config *vm.Config, tests []vm.Test, g *goTest, errs io.Writer, f func(vm.Event)) error {
	k, a, err := c.prepare(ctx, cache, name, errs)
	if err != nil {
		return err
	}
	config.Image.Kernel, config.Accel, config.Memory, config.CPUs = k, a, c.memory, c.cpus
	n := c.machines
	if n == 0 {
		n = vm.Machines(a, len(tests))
	}
	machines, err := vm.StartAll(ctx, *config, n)
	if err != nil {
		return err
	}
	defer vm.CloseAll(machines)
	for _, m := range machines {
		fmt.Fprintf(errs, "vmtest: the guest answered after %v: %d CPUs, %d MiB free\n", m.Booted.Round(time.Millisecond), m.Hello.CPUs, m.Hello.Memory>>20)
		if m.Hello.Release != k.Release {
			return fmt.Errorf("the guest runs Linux %s, want %s", m.Hello.Release, k.Release)
		}
	}
	return vm.RunTests(ctx, machines, tests, g.args, g.timeout, f)
}
