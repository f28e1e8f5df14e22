// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command xdpfab is the command-line client: it runs atomic operations on the
// memory of other nodes, measures them, and looks at interfaces and daemons.
//
// An operation that a person types begins here. Each command is a file: it reads
// flags, opens the interface through the app's opener (a test puts a pipe in its
// place), posts operations with package xdpfab, and prints the results, as text or as
// JSON. Package value turns text into operands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// sameSignal is how long a signal may arrive twice: programs such as timeout send it to a
// process and to its group.
const sameSignal = 200 * time.Millisecond

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, func() { // a second signal ends the process at once
		time.Sleep(sameSignal)
		stop()
	})
	// A write to a pipe that nobody reads any more fails then, instead of ending the
	// process between an operation and what is to be done after it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	a := &app{
		open: func(ctx context.Context, ifname string, attr xdpfab.DomainAttr) (*xdpfab.Domain, error) {
			return xdpfab.Open(ctx, ifname, attr)
		},
		in: os.Stdin, out: os.Stdout, err: os.Stderr, tty: isTerminal(os.Stderr), rows: rowsOf(os.Stdout),
		exit: os.Exit,
	}
	a.userSettings()
	os.Exit(a.run(ctx, os.Args[1:]))
}
