// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

const (
	startLimit = 30 * time.Second // for a server to be ready
	endLimit   = 3 * time.Second  // from asking a process to end to killing it
)

// command describes how to start a contestant.
type command struct {
	program string // name of a file in this program's folder, or in PATH
	args    []string
	env     []string // on top of ours
}

func (c command) String() string {
	return strings.Join(append(append(append([]string{}, c.env...), c.program), c.args...), " ")
}

// process is a contestant that runs.
type process struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser // its standard input
	lines chan string    // of its standard output; closed with it
	stop  context.CancelFunc
	log   bytes.Buffer  // of its standard error; valid once ended is closed
	ended chan struct{} // closed when it is gone
	err   error         // valid once ended is closed
}

// start starts a contestant that ends when the context does: it is asked to end, and
// killed after endLimit. It also ends with this process, however this process ends.
func (n *network) start(ctx context.Context, side *veth.Side, core int, c command) (*process, error) {
	path := filepath.Join(n.dir, c.program)
	if _, err := exec.LookPath(path); err != nil {
		if path, err = exec.LookPath(c.program); err != nil {
			return nil, fmt.Errorf("%s is neither in %s nor in PATH: build it with make bench: %w",
				c.program, n.dir, err)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	p := &process{name: c.program, stop: stop, lines: make(chan string, 64), ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, path, c.args...)
	p.cmd.Env = append(p.cmd.Environ(), c.env...)
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = endLimit
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		if err = spawn(side, core, p.cmd); err == nil {
			favour(p.cmd.Process.Pid)
		}
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("starting %v: %w", c, err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// line returns what follows the prefix on the next line that has it.
func (p *process) line(ctx context.Context, prefix string) (string, error) {
	for {
		select {
		case l, ok := <-p.lines:
			if !ok {
				<-p.ended
				return "", fmt.Errorf("%s ended before it printed %q: %v: %s", p.name, prefix, p.err, p.said())
			}
			if rest, ok := strings.CutPrefix(l, prefix); ok {
				return strings.TrimSpace(rest), nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("%s: waiting for %q: %w", p.name, prefix, context.Cause(ctx))
		}
	}
}

// goOn gives a process a line of input: a client whose warm-up is over, or will be,
// measures then, and a host tells its allocations. One that has ended needs it no more.
func (p *process) goOn() { _, _ = io.WriteString(p.in, "\n") }

// close ends the process, if it has not ended yet, and waits until it has.
func (p *process) close() {
	p.stop()
	for range p.lines {
	}
	<-p.ended
}

// said returns the last part of the process's standard error.
func (p *process) said() string {
	text := strings.TrimSpace(p.log.String())
	return text[max(0, len(text)-500):]
}

// nice is the priority of all contestants: other processes of the machine then decide
// less about the figures.
const nice = -10

// raise gives this thread the priority of contestants, which a child inherits, and
// returns what undoes that. A process without the right to it keeps its priority.
func raise() (restore func()) {
	const kernelBase = 20 // the system call returns 20 minus the nice value
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, 0, nice) != nil {
		return func() {}
	}
	return func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, kernelBase-before) } // it had that before
}

// favour gives the scheduling group of a process, which has a session of its own, the
// priority of contestants: with groups, the kernel weighs a process against those of its
// own group alone. A kernel without groups has no such file.
func favour(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
}
