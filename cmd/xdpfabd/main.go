// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command xdpfabd is the node daemon: it puts an interface to use and serves
// named memory regions on it, so that other nodes can run atomics on them. In the
// journey of an operation it is the target: the process whose memory is changed.
//
//	arguments ─┐
//	           ├─► config ─► memories ─► domain ─► serve ─► drain, detach, exit
//	TOML file ─┘   (pure)                            │
//	                                 control socket ─┴─ Domain.Done
//
// Configuration is read once, at the start. The XDP program is attached by a
// bpf_link that the process holds, so however the process ends the interface is
// clean, and a restart works at once.
//
// Exit codes: 0 asked to end and did; 1 failed while running, or its memory,
// files or control socket could not be had; 2 wrong arguments or configuration;
// 5 the interface cannot be used: missing, taken, unsupported or no privilege.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// The exit codes; the client commands use the same numbers for the same things.
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
	told bool // in the log
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole program; what it returns is the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	cmd := newCommand(stdout, stderr)
	cmd.SetArgs(args)
	err := cmd.Execute()
	if err == nil {
		return exitOK
	}
	if exit := new(exitError); !errors.As(err, &exit) || !exit.told {
		fmt.Fprintf(stderr, "xdpfabd: %v\n", err)
	}
	return exitCode(err)
}

// exitCode is what an error makes the process end with.
func exitCode(err error) int {
	if exit := new(exitError); errors.As(err, &exit) {
		return exit.code
	}
	return exitUsage // what cobra itself complains of
}
