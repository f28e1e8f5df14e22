// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/xdpfab/xdpfab/test/vm"
)

// execute runs a test binary that go test has built, with its arguments, and
// returns its exit code. Its output passes through.
func execute(ctx context.Context, c *command, out, errs io.Writer) int {
	code, err := c.execute(ctx, out, errs)
	if err != nil {
		fmt.Fprintln(errs, "vmtest:", err)
		return exitBroken
	}
	return code
}

func (c *command) execute(ctx context.Context, out, errs io.Writer) (int, error) {
	here, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	t, err := vm.Given(c.rest[0], here)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "xdpfab-vmtest-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := vm.BuildPrograms(c.arch, dir); err != nil {
		return 0, err
	}
	files, err := vm.Files([]vm.Test{*t}, dir)
	if err != nil {
		return 0, err
	}
	cache, err := vm.OpenCache(c.cache)
	if err != nil {
		return 0, err
	}
	config, why, err := c.prepare(ctx, cache, c.guests[0], files)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(errs, "vmtest: Linux %s under %s: %s\n", config.Image.Kernel.Release, config.Accel, why)
	machines, err := vm.StartAll(ctx, config, 1, func(m string) { fmt.Fprintln(errs, "vmtest:", m) })
	if err != nil {
		return 0, err
	}
	defer vm.CloseAll(machines)
	return machines[0].Execute(ctx, t, c.rest[1:], out, errs)
}
