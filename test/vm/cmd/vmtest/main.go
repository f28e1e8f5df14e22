// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command vmtest runs tests of this project inside virtual machines with kernels
// of choice; see package vm.
//
//	vmtest [flags] [--] [packages] [flags of go test]
//	vmtest [flags] -exec BINARY [arguments]        for go test -exec
//
// The exit code is 0 if all tests passed, 1 if not, 2 if they could not be run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/test/vm"
)

// Exit codes.
const (
	exitPassed = iota
	exitFailed
	exitBroken
)

// errFailed is the end of a run whose tests did not all pass.
var errFailed = errors.New("tests failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run does the work of main, and returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	c, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitPassed
	}
	if err == nil {
		if c.exec {
			return execute(ctx, c, out, errs)
		}
		err = test(ctx, c, out, errs)
	}
	switch {
	case err == nil:
		return exitPassed
	case errors.Is(err, errFailed):
		return exitFailed
	}
	fmt.Fprintln(errs, "vmtest:", err)
	return exitBroken
}

// command is a parsed command line.
type command struct {
	kernels  []string
	modules  string
	cache    string
	accel    vm.Accel
	memory   int64 // bytes
	cpus     int
	machines int // 0 means vm.Machines
	fresh    bool
	exec     bool
	table    bool

	rest []string // what follows the flags
}

func parse(args []string, errs io.Writer) (*command, error) {
	c := &command{}
	f := flag.NewFlagSet("vmtest", flag.ContinueOnError)
	f.SetOutput(errs)
	var names []string
	for _, s := range vm.Suites {
		names = append(names, s.Name)
	}
	kernels := f.String("kernel", vm.DefaultKernel, "kernels to test with, separated by commas: the path of a bzImage, or one of "+strings.Join(names, ", ")+"; all means those")
	f.StringVar(&c.modules, "modules", "", "folder with the kernel's modules, lib/modules/RELEASE; default: the one that belongs to the image")
	f.StringVar(&c.cache, "cache", "", "folder for kernels; default: xdpfab-vm in the user's cache")
	accel := f.String("accel", "auto", "auto, kvm or tcg")
	memory := f.Int("memory", 0, "of the guest, in MiB; default: what its files need")
	f.IntVar(&c.cpus, "cpus", 2, "of the guest")
	f.IntVar(&c.machines, "machines", 0, "that share the packages; default: one, or one for each core of the host under TCG")
	f.BoolVar(&c.fresh, "fresh", false, "fetch named kernels again, for newer ones")
	f.BoolVar(&c.exec, "exec", false, "run one test binary, as go test -exec wants it")
	f.BoolVar(&c.table, "table", false, "end with a table of kernels and features")
	f.Usage = func() {
		fmt.Fprintln(errs, "usage: vmtest [flags] [--] [packages] [flags of go test]\n       vmtest [flags] -exec BINARY [arguments]")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if *memory < 0 || c.cpus < 1 || c.cpus > 64 || c.machines < 0 || c.machines > 64 {
		return nil, fmt.Errorf("%d MiB, %d CPUs and %d machines: want a positive number of each, and at most 64 CPUs or machines", *memory, c.cpus, c.machines)
	}
	c.memory, c.accel, c.rest = int64(*memory)<<20, vm.Accel(*accel), f.Args()
	c.kernels = strings.Split(*kernels, ",")
	if *kernels == "all" {
		c.kernels = names
	}
	if c.exec && (len(c.kernels) != 1 || len(c.rest) == 0) {
		return nil, errors.New("-exec takes one kernel and a test binary")
	}
	return c, nil
}

// prepare finds a kernel and its accelerator, and prints both.
func (c *command) prepare(ctx context.Context, cache *vm.Cache, name string, errs io.Writer) (*vm.Kernel, vm.Accel, error) {
	k, err := cache.Kernel(name, c.modules, c.fresh)
	if err != nil {
		return nil, "", err
	}
	a, why, err := cache.Accel(ctx, c.accel, k)
	if err != nil {
		return nil, "", err
	}
	fmt.Fprintf(errs, "vmtest: Linux %s under %s: %s\n", k.Release, a, why)
	return k, a, nil
}
