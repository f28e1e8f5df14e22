// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command bench measures xdpfab and compares it with the least that its transport costs
// (the floor), with its peers, and with its aims: all in one run, on one veth pair and
// the same two cores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	mode := flag.String("mode", "full", "full, quick, or guard")
	dir := flag.String("results", "bench/results", "directory for the files of a full run")
	rounds := flag.Int("rounds", 8, "rounds of a full run")
	limits := flag.String("limits", "bench/limits.json", "file with the limits of the guard")
	flag.Parse()
	if *rounds < 1 || *rounds > 100 {
		return fmt.Errorf("%d rounds: want 1 to 100", *rounds)
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root: it makes network namespaces and a veth pair of its own")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n, err := newNetwork(filepath.Dir(self), veth.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	switch *mode {
	case "quick":
		return quick(ctx, n, os.Stdout)
	case "full":
		return full(ctx, n, os.Stdout, *rounds, *dir)
	case "guard":
		return guard(ctx, n, os.Stdout, *limits)
	default:
		return fmt.Errorf("mode %q: want full, quick or guard", *mode)
	}
}
