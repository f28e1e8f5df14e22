// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"text/tabwriter"
	"time"
)

const starts = 5 // measured from the start of both sides to the first operation

// syscallIDs are the contests whose system calls are counted, in runs of their own.
var syscallIDs = []string{"floor", "trip", "fetch", "base", "ucx", "ucx_rate", "libfabric", "libfabric_rate",
	"plain_tcp"}

// full measures everything and prints it. It writes the tables to a directory, and every
// sample to a file.
func full(ctx context.Context, n *network, out io.Writer, rounds int, dir, samples string) error {
	start := time.Now()
	r := &report{Machine: describe(), Started: start.UTC().Truncate(time.Second), Rounds: rounds}
	plan := fullPlan(sampleTime)
	var err error
	if r.results, err = n.rounds(ctx, plan, budget{rounds: rounds}); err != nil {
		return err
	}
	if r.Load, err = n.curve(ctx); err != nil {
		return err
	}
	if r.Syscalls, err = n.countSyscalls(ctx, pick(plan, syscallIDs...)); err != nil {
		return err
	}
	if r.Idle, err = n.idle(ctx); err != nil {
		return err
	}
	if r.Shared, err = n.sharing(ctx); err != nil {
		return err
	}
	for range starts {
		s, err := n.firstOperation(ctx)
		if err != nil {
			return fmt.Errorf("start to first operation: %w", err)
		}
		r.StartSeconds = append(r.StartSeconds, s)
	}
	r.Aims = judge(r)
	r.Seconds = time.Since(start).Seconds()
	r.print(out)
	return r.write(dir, samples)
}

// countSyscalls runs contests once each with their system calls counted.
func (n *network) countSyscalls(ctx context.Context, plan []entry) (_ map[string]*perSide, err error) {
	if n.syscalls, err = newSyscallCounter(); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, n.syscalls.close())
		n.syscalls = nil
	}()
	counts := map[string]*perSide{}
	for _, e := range plan {
		fmt.Fprintf(os.Stderr, "system calls: %s\n", e.name)
		s, err := n.run(ctx, e.contest)
		if err != nil && e.peer && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		counts[e.id] = s.Syscalls
	}
	return counts, nil
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "%s, %d cores, Linux %s, %s, commit %s\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel,
		r.Machine.Go, r.Machine.Commit)
	fmt.Fprintf(out, "One veth pair, a core for each side, %d rounds in turns, %.0f s\n", r.Rounds, r.Seconds)
	r.results.print(out)
	printCurve(out, r.Load)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nSystem calls an operation\n  \tclient\tserver\t")
	for _, e := range r.results.plan {
		if s := r.Syscalls[e.id]; s != nil {
			fmt.Fprintf(w, "  %s\t%s\t%s\t\n", e.name, number(s.Client), number(s.Server))
		}
	}
	w.Flush()
	printAims(out, r.Aims)
}

// write makes latest.txt in a directory, which is committed. The file of samples is not
// committed, since every run changes all of it. Beside it is aims.md, the table of
// docs/performance.md with what was measured.
func (r *report) write(dir, samples string) error {
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(filepath.Dir(samples), 0o755)); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r.file(), "", "  ")
	if err != nil {
		return err
	}
	var tables, aims bytes.Buffer
	r.print(&tables)
	markdown(&aims, r.Aims)
	return errors.Join(
		os.WriteFile(samples, append(b, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "latest.txt"), trailing.ReplaceAll(tables.Bytes(), nil), 0o644),
		os.WriteFile(filepath.Join(filepath.Dir(samples), "aims.md"), aims.Bytes(), 0o644))
}

var trailing = regexp.MustCompile(`(?m) +$`)
