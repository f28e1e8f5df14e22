// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command xdpfabd is the node daemon: it puts an interface to use and serves
// named memory regions on it, so that other nodes can run atomics on them. In the life
// of an operation it is the target: the process whose memory is changed.
//
//	arguments ─┐
//	           ├─► config ─► memories ─► domain ─► serve ─► drain, detach, exit
//	TOML file ─┘   (pure)                            │
//	                                 control socket ─┴─ Domain.Done
//
// Configuration is read once, at the start. The XDP program is attached by a
// bpf_link that the process holds, so the interface is clean however the process ends,
// and a restart works at once.
//
// Exit codes: 0 the daemon ended on request; 1 it failed while running, or did not get
// its memory, files or address for metrics; 2 wrong arguments or configuration; 5 the
// interface or the control socket cannot be used: missing, taken, unsupported or no
// privilege.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/xdpfab/xdpfab/internal/tell"
)

// The exit codes; the client commands use the same numbers with the same meaning.
const (
	exitOK        = 0
	exitFailure   = 1
	exitUsage     = 2
	exitInterface = 5
)

// exitError is an error that decides the exit code.
type exitError struct {
	code int
	err  error
	told bool // the log has it already
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() {
	// A panic ends the process by SIGABRT: Go's exit code for it is that of a wrong
	// configuration, after which systemd does not start the daemon again.
	debug.SetTraceback("crash")
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	stderr = patient(stderr)
	cmd := newCommand(stdout, stderr)
	cmd.SetArgs(args)
	err := cmd.Execute()
	if err == nil {
		return exitOK
	}
	if exit := new(exitError); !errors.As(err, &exit) || !exit.told {
		fmt.Fprintln(stderr, tell.Fold("xdpfabd: "+tell.Lines(err)))
	}
	return exitCode(err)
}

// exitCode returns the exit code that an error leads to.
func exitCode(err error) int {
	if exit := new(exitError); errors.As(err, &exit) {
		return exit.code
	}
	return exitUsage // cobra's own errors are about arguments
}
