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
	guests   []guest // to test with, one after the other
	arch     *vm.Arch
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

// guest is a kind of machine.
type guest struct {
	name   string // of its column in the table
	kernel string
	nic    *vm.NIC // nil means no NIC
}

// set is what is tested when no packages are named.
func (c *command) set() []vm.Choice {
	if c.guests[0].nic != nil {
		return vm.NICSet
	}
	return vm.ShortSet
}

// guests reads the flags -kernel and -nic. A NIC has a kernel of its own, unless one is
// given.
func guests(kernels, nics string, given bool) (list []guest, err error) {
	if nics == "" {
		for _, k := range named(kernels, vm.Suites, func(s vm.Suite) string { return s.Name }) {
			list = append(list, guest{name: k, kernel: k})
		}
		return list, nil
	}
	if given && (kernels == "all" || strings.Contains(kernels, ",")) {
		return nil, fmt.Errorf("-kernel %s with -nic: want one kernel, or none for that of each NIC", kernels)
	}
	for _, name := range named(nics, vm.NICs, func(n vm.NIC) string { return n.Name }) {
		n, err := vm.FindNIC(name)
		if err != nil {
			return nil, err
		}
		g := guest{name: name, kernel: n.Kernel, nic: n}
		if given {
			g.kernel = kernels
		}
		list = append(list, g)
	}
	return list, nil
}

// named splits a list with commas; "all" stands for all that there are.
func named[T any](list string, all []T, name func(T) string) []string {
	if list != "all" {
		return strings.Split(list, ",")
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = name(v)
	}
	return names
}

func parse(args []string, errs io.Writer) (*command, error) {
	c := &command{}
	f := flag.NewFlagSet("vmtest", flag.ContinueOnError)
	f.SetOutput(errs)
	names := named("all", vm.Suites, func(s vm.Suite) string { return s.Name })
	kernels := f.String("kernel", vm.DefaultKernel,
		"kernels to test with, separated by commas: the path of a bzImage or an arm64 Image, or one of "+
			strings.Join(names, ", ")+"; all means those")
	nics := f.String("nic", "", "kinds of NIC to test with, separated by commas: "+
		strings.Join(named("all", vm.NICs, func(n vm.NIC) string { return n.Name }), ", ")+
		"; all means those; each has a kernel of its own")
	arch := f.String("arch", "amd64",
		"architecture of the guest, amd64 or arm64; QEMU and the programs for another one than the host's are fetched")
	f.StringVar(&c.modules, "modules", "",
		"folder with the kernel's modules, lib/modules/RELEASE; default: the one that belongs to the image")
	f.StringVar(&c.cache, "cache", "", "folder for kernels; default: xdpfab-vm in the user's cache")
	accel := f.String("accel", "auto", "auto, kvm or tcg")
	memory := f.Int("memory", 0, "of the guest, in MiB; default: what its files need")
	f.IntVar(&c.cpus, "cpus", 2, "of the guest")
	f.IntVar(&c.machines, "machines", 0,
		"that share the packages; default: one, or under TCG as many as keep the host's cores busy")
	f.BoolVar(&c.fresh, "fresh", false, "fetch named kernels again, for newer ones")
	f.BoolVar(&c.exec, "exec", false, "run one test binary, as go test -exec wants it")
	f.BoolVar(&c.table, "table", false, "end with a table of kernels and features")
	f.Usage = func() {
		fmt.Fprintln(errs,
			"usage: vmtest [flags] [--] [packages] [flags of go test]\n       vmtest [flags] -exec BINARY [arguments]")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if *memory < 0 || c.cpus < 1 || c.cpus > 64 || c.machines < 0 || c.machines > 64 {
		return nil,
			fmt.Errorf(
				"%d MiB, %d CPUs and %d machines: want a positive number of each, and at most 64 CPUs or machines",
				*memory,
				c.cpus, c.machines)
	}
	c.memory, c.accel, c.rest = int64(*memory)<<20, vm.Accel(*accel), f.Args()
	given := false
	f.Visit(func(f *flag.Flag) { given = given || f.Name == "kernel" })
	var err error
	if c.guests, err = guests(*kernels, *nics, given); err != nil {
		return nil, err
	}
	for _, g := range c.guests { // before the tests are built, which takes long
		if err := vm.CheckKernel(g.kernel); err != nil {
			return nil, err
		}
	}
	if c.arch, err = vm.FindArch(*arch); err != nil {
		return nil, err
	}
	if c.arch != vm.AMD64 && *nics != "" {
		return nil,
			fmt.Errorf("-nic %s with -arch %s: the NICs are known to work on amd64 alone; leave one of them out",
				*nics, *arch)
	}
	if c.exec && (len(c.guests) != 1 || len(c.rest) == 0) {
		return nil, errors.New("-exec takes one kernel or NIC and a test binary")
	}
	return c, nil
}

// prepare finds what a guest runs with, and why with this accelerator.
func (c *command) prepare(
	ctx context.Context, cache *vm.Cache, g guest, files map[string]string,
) (config vm.Config, why string, err error) {
	config = vm.Config{Image: vm.Image{Files: files}, NIC: g.nic, Memory: c.memory, CPUs: c.cpus}
	if config.Image.Kernel, err = cache.Kernel(g.kernel, c.arch, c.modules, c.fresh); err != nil {
		return config, "", err
	}
	if g.nic != nil {
		config.Image.Drivers, config.Image.Tools = g.nic.Modules, []string{"ethtool"}
		if config.Emulator, err = cache.Emulator(c.arch, g.nic.Model()); err != nil {
			return config, "", err
		}
	}
	if !c.arch.Native() {
		if config.Emulator, err = cache.Emulator(c.arch, "virtio-serial-pci"); err != nil {
			return config, "", err
		}
	}
	if config.Image.Sysroot, err = cache.Sysroot(c.arch); err != nil {
		return config, "", err
	}
	config.Accel, why, err = cache.Accel(ctx, c.accel, config.Image.Kernel)
	return config, why, err
}
