// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

const (
	startLimit  = 30 * time.Second // for the daemon to answer
	clientLimit = 5 * time.Minute  // for one client process: on an emulated processor it takes minutes
	endLimit    = 30 * time.Second // from asking a process to end to killing it
	silence     = 60 * time.Second // give-up time of clients: on a busy machine the daemon may answer late
)

// command prepares a process that ends with this one, however this one ends, and that
// a terminal's Ctrl-C does not reach, since this process ends it. When the context ends
// the process is asked to end; after endLimit it is killed.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = endLimit
	return c
}

// The share of this process's CPUs that a child gets.
const (
	serverCPUs = iota // the last one
	clientCPUs        // all others
)

// startOn starts a process in a namespace. If there are two CPUs, server and client
// get CPUs of their own: on a real network they are different machines. Here the
// kernel sees that one wakes up the other and would put both on the same CPU, where
// each waits until the other goes to sleep.
func startOn(side *veth.Side, c *exec.Cmd, share int) error {
	return side.Do(func() error {
		var all unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
			return c.Start()
		}
		last := 0
		for cpu := range len(all) * 64 {
			if all.IsSet(cpu) {
				last = cpu
			}
		}
		set := all
		set.Clear(last)
		if share == serverCPUs {
			set.Zero()
			set.Set(last)
		}
		// The child inherits the CPUs from this thread, which then gets its own back.
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("choosing CPUs: %w", err)
		}
		return errors.Join(c.Start(), unix.SchedSetaffinity(0, &all))
	})
}

// daemon is an xdpfabd that runs in a namespace.
type daemon struct {
	cmd    *exec.Cmd
	stop   context.CancelFunc
	ended  chan struct{} // closed when the process is gone
	err    error         // the process's; valid once ended is closed
	log    bytes.Buffer  // valid once ended is closed
	socket string
}

// startDaemon starts the daemon on the namespace's interface and waits until it
// answers. On error no process is left.
func startDaemon(ctx context.Context, side *veth.Side, share int, binary, socket string) (*daemon, error) {
	// The daemon outlives an interrupt, so that close can end it in order.
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	d := &daemon{stop: stop, ended: make(chan struct{}), socket: socket}
	args := []string{"--interface", side.IfName, "--control", socket, "--region", "demo=64KiB",
		"--guest", "allow:user=0"} // the program in C
	if !kernel.Before(kernel.Resident) {
		args = append(args, "--region", residentRegion+"=64KiB:resident", "--pin", "none")
	}
	d.cmd = command(own, binary, args...)
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	if err := startOn(side, d.cmd, share); err != nil {
		stop()
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.ended)
	}()
	if err := d.ready(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// ready waits for the control socket to answer.
func (d *daemon) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit,
		fmt.Errorf("the daemon did not answer within %v", startLimit))
	defer cancel()
	for {
		if _, err := d.status(ctx); err == nil {
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("the daemon ended at once: %w: %s", d.err, strings.TrimSpace(d.log.String()))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// with returns a context that also ends when the daemon does. Its resources are freed
// when the daemon ends, which close ensures.
func (d *daemon) with(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		<-d.ended
		cancel(errors.New("the daemon is gone"))
	}()
	return ctx
}

func (d *daemon) status(ctx context.Context) (control.Status, error) {
	c, err := control.Dial(d.socket)
	if err != nil {
		return control.Status{}, err
	}
	defer c.Close()
	return c.Status(ctx)
}

// close ends the process and waits until it has ended. An end that close caused is no
// error.
func (d *daemon) close() error {
	select {
	case <-d.ended:
		if d.err != nil {
			return fmt.Errorf("the daemon failed: %w: %s", d.err, strings.TrimSpace(d.log.String()))
		}
		return nil
	default:
	}
	d.stop()
	<-d.ended
	if d.cmd.ProcessState.ExitCode() != 0 {
		return fmt.Errorf("the daemon did not end well: %v: %s", d.cmd.ProcessState, strings.TrimSpace(d.log.String()))
	}
	return nil
}

// runClient runs this program as another process in a namespace, and decodes the JSON
// that it prints into result.
func runClient(user context.Context, side *veth.Side, self string, result any, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(user, clientLimit, fmt.Errorf("took longer than %v", clientLimit))
	defer cancel()
	cmd := command(ctx, self, append(args, "--direct", "-i", side.IfName, "--timeout", silence.String(), "--json")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := startOn(side, cmd, clientCPUs); err != nil {
		return fmt.Errorf("starting a client: %w", err)
	}
	err := cmd.Wait()
	if user.Err() != nil {
		return context.Cause(user) // not why a client failed
	}
	if ctx.Err() != nil {
		return fmt.Errorf("`xdpfab %s`: %w", args[0], context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("xdpfab %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		return fmt.Errorf("output of xdpfab %s: %w", args[0], err)
	}
	return nil
}
