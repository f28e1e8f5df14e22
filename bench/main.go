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
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
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
	mode := flag.String("mode", "full",
		"full, quick, guard, shared: programs that share an interface, sync: locks and counters beside etcd, Redis "+
			"and NATS, or pick: the contests that -contests names")
	dir := flag.String("results", "bench/results", "directory for the tables of a full run")
	samples := flag.String("samples", "bin/bench/latest.json", "file for every sample of a full run")
	rounds := flag.Int("rounds", 16, "rounds of a full run, of sync or of a pick")
	ids := flag.String("contests", "", "ids of contests to pick, with commas")
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
	n, err := newNetwork(filepath.Dir(self), veth.Options{MTU: standardMTU})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	switch *mode {
	case "quick":
		return quick(ctx, n, os.Stdout)
	case "full":
		return full(ctx, n, os.Stdout, *rounds, *dir, *samples)
	case "guard":
		return guard(ctx, n, os.Stdout, *limits)
	case "shared":
		r, err := n.sharing(ctx)
		if err != nil {
			return err
		}
		printAims(os.Stdout, r.aims())
		return nil
	case "sync":
		return parts(ctx, n, os.Stdout, *rounds)
	case "pick":
		return picked(ctx, n, os.Stdout, strings.Split(*ids, ","), *rounds)
	default:
		return fmt.Errorf("mode %q: want full, quick, guard, shared, sync or pick", *mode)
	}
}

// picked measures some contests, and prints their table.
func picked(ctx context.Context, n *network, out io.Writer, ids []string, rounds int) error {
	plan := append(fullPlan(sampleTime), syncPlan()...)
	for _, id := range ids {
		if len(pick(plan, id)) == 0 {
			return fmt.Errorf("there is no contest %q: want an id of plan.go, transfer.go or sync.go", id)
		}
	}
	r, err := n.rounds(ctx, pick(plan, ids...), budget{rounds: rounds})
	if err != nil {
		return err
	}
	r.print(out)
	return nil
}
