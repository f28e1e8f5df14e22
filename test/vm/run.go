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
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/census"
	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// settle is how long the kernel may take to free the objects of a process that
// has ended: BPF objects and namespaces are freed some grace periods later.
const settle = 15 * time.Second

// dumpTime is how long after its own time limit a test binary may be printing stacks
// before it is asked for them by a signal.
const dumpTime = 60 * time.Second

// dmesgLines is how much of the kernel's log a failure shows.
const dmesgLines = 60

// signalled is what guest.Done adds to the number of a signal.
const signalled = 128

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

// runTest runs one test binary, and passes on its output and one verdict. The error is
// that of the machine's end.
func (m *Machine) runTest(ctx context.Context, t *Test, args []string, limit time.Duration, f func(Event)) error {
	begin, cpu := time.Now(), m.CPU()
	var tests tally // added to by the converter, which has ended when try returns
	problems, err := m.try(ctx, t, args, limit, func(e Event) {
		tests.add(e)
		f(e)
	})
	if err == nil && tests.nothing() {
		problems = append(problems,
			fmt.Sprintf("nothing was tested: all %d tests were skipped: -v shows why", tests.all))
	}
	action := "pass"
	if len(problems) > 0 || err != nil {
		action = "fail"
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, p := range problems {
		for line := range strings.Lines(p) {
			f(Event{Action: "output", Package: t.Package, Output: strings.TrimRight(line, "\n") + "\n"})
		}
	}
	now := time.Now()
	elapsed := now.Sub(begin).Seconds()
	f(Event{Time: &now, Action: action, Package: t.Package, Elapsed: &elapsed, CPU: max(0, m.CPU()-cpu), Tests: tests})
	return err
}

// try runs one test binary, and returns why it has not passed, with the end of the
// kernel's log. The error is that of the machine's end.
func (m *Machine) try(
	ctx context.Context, t *Test, args []string, limit time.Duration, f func(Event),
) (problems []string, err error) {
	first, err := m.look(ctx)
	if err != nil {
		return nil, err
	}
	c, err := newConverter(t.Package, f)
	if err != nil {
		return nil, err
	}
	always := []string{t.guestBinary(), "-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + limit.String()}
	code, runErr := m.Run(ctx, guest.Command{
		Args: slices.Concat(always, t.Args, args),
		Env:  m.testEnv(), Dir: guestSource + "/" + t.Dir, Limit: int((limit + dumpTime) / time.Second),
	}, c, c)
	said, err := c.finish()
	switch {
	case errors.Is(runErr, errRequest):
		problems = append(problems, runErr.Error())
	case runErr != nil:
		return nil, runErr
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	if why := judge(said, code); why != "" {
		problems = append(problems, why)
	}
	traces, err := m.inspect(ctx, first)
	if err != nil {
		return problems, err
	}
	if problems = append(problems, traces...); len(problems) == 0 {
		return nil, nil
	}
	log, err := m.Dmesg(ctx)
	for line := range strings.Lines(tail(strings.TrimPrefix(log, first.log), dmesgLines)) {
		problems = append(problems, "dmesg: "+strings.TrimSpace(line))
	}
	return problems, err
}

// judge returns why a test binary has not passed, "" if it has: it said so as its last
// word, and its exit code agrees. test2json has no last word from a binary that panics,
// is killed, or exits by itself.
func judge(said string, code int) string {
	ended := fmt.Sprintf("ended with exit code %d", code)
	if code > signalled {
		ended = fmt.Sprintf("was ended by the signal %v", syscall.Signal(code-signalled))
	}
	switch {
	case said == "pass" && code == 0:
		return ""
	case said == "pass":
		return "no verdict: the test binary said PASS and " + ended
	case said == "fail":
		return fmt.Sprintf("exit status %d", code)
	}
	return "no verdict: the test binary " + ended + " and said neither PASS nor FAIL"
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
	since, whole := strings.CutPrefix(log, first.log)
	if !whole {
		problems = append(problems, "the kernel's log is full, so that warnings may be lost: raise log_buf_len")
	}
	for _, w := range m.nic.foreign(warnings(since)) {
		remedy := ""
		if outOfMemory.MatchString(w) {
			remedy = ": raise -memory"
		}
		problems = append(problems, fmt.Sprintf("the kernel says: %s%s", w, remedy))
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
	code, err := m.Run(ctx, guest.Command{Args: append([]string{t.guestBinary()}, args...), Env: m.testEnv(),
		Dir: guestSource + "/" + t.Dir}, out, errs)
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
