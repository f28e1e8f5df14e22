// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/census"
	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// settle is how long the kernel may take to free the objects of a process that
// has ended: BPF objects and namespaces are freed some grace periods later.
const settle = 15 * time.Second

// dmesgLines is how much of the kernel's log a failure shows.
const dmesgLines = 60

// before is the state of the machine before a package runs.
type before struct {
	census []string
	log    string
}

func (m *Machine) look(ctx context.Context) (b before, err error) {
	if b.census, err = m.Census(ctx); err == nil {
		b.log, err = m.Dmesg(ctx)
	}
	return b, err
}

// runTest runs one test binary. The error is that of the machine's end.
func (m *Machine) runTest(ctx context.Context, t *Test, args []string, limit time.Duration, f func(Event)) error {
	first, err := m.look(ctx)
	if err != nil {
		return m.lost(t, err, f)
	}
	c, err := newConverter(t.Package, f)
	if err != nil {
		return err
	}
	_, runErr := m.Run(ctx, guest.Command{
		Args: slices.Concat([]string{t.guestBinary(), "-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + limit.String()}, t.Args, args),
		Env:  m.testEnv(), Dir: guestSource + "/" + t.Dir, Limit: int((limit + 10*time.Second) / time.Second),
	}, c, c)
	verdict, err := c.finish()
	if err = errors.Join(runErr, err); err != nil {
		return m.lost(t, err, f)
	}
	problems, err := m.inspect(ctx, first)
	if err != nil {
		return m.lost(t, err, f)
	}
	for _, p := range problems {
		verdict.Action = "fail"
		f(Event{Action: "output", Package: t.Package, Output: p + "\n"})
	}
	if verdict.Action == "fail" {
		log, err := m.Dmesg(ctx)
		if err != nil {
			return m.lost(t, err, f)
		}
		for line := range strings.Lines(tail(strings.TrimPrefix(log, first.log), dmesgLines)) {
			f(Event{Action: "output", Package: t.Package, Output: "dmesg: " + strings.TrimSpace(line) + "\n"})
		}
	}
	f(verdict)
	return nil
}

// lost reports the end of the machine while a package ran.
func (m *Machine) lost(t *Test, err error, f func(Event)) error {
	for line := range strings.Lines(err.Error()) {
		f(Event{Action: "output", Package: t.Package, Output: strings.TrimRight(line, "\n") + "\n"})
	}
	f(Event{Action: "fail", Package: t.Package})
	return err
}

// inspect looks for traces that a package must not leave on a machine.
func (m *Machine) inspect(ctx context.Context, first before) (problems []string, err error) {
	var left []string
	for end := time.Now().Add(settle); ; time.Sleep(100 * time.Millisecond) {
		now, err := m.Census(ctx)
		if err != nil {
			return nil, err
		}
		if left = m.nic.ours(census.Added(first.census, now)); len(left) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, l := range left {
		problems = append(problems, "left behind: "+l)
	}
	log, err := m.Dmesg(ctx)
	if err != nil {
		return nil, err
	}
	known := warnings(first.log)
	for _, w := range warnings(log) {
		if !slices.Contains(known, w) {
			remedy := ""
			if outOfMemory.MatchString(w) {
				remedy = ": raise -memory"
			}
			problems = append(problems, fmt.Sprintf("the kernel says: %s%s", w, remedy))
		}
	}
	return problems, nil
}

// Execute runs a test binary with arguments of its own and returns its exit code,
// which is also 1 if the kernel warned or something was left behind.
func (m *Machine) Execute(ctx context.Context, t *Test, args []string, out, errs io.Writer) (int, error) {
	first, err := m.look(ctx)
	if err != nil {
		return 0, err
	}
	code, err := m.Run(ctx, guest.Command{Args: append([]string{t.guestBinary()}, args...), Env: m.testEnv(), Dir: guestSource + "/" + t.Dir}, out, errs)
	if err != nil {
		return 0, err
	}
	problems, err := m.inspect(ctx, first)
	if err != nil {
		return 0, err
	}
	for _, p := range problems {
		fmt.Fprintln(errs, p)
		code = max(code, 1)
	}
	return code, nil
}
