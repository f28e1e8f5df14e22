// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// borrowing is the choice of a queue that a daemon lends.
type borrowing struct{ borrow bool }

func (b *borrowing) register(fs *pflag.FlagSet) {
	fs.BoolVar(&b.borrow, "borrow", false,
		"drive a queue of the interface that the daemon lends, if its configuration allows that")
}

// borrows turns the flag into an attribute.
func (f *linkFlags) borrows(c *cobra.Command, attr *xdpfab.DomainAttr) error {
	switch {
	case f.borrow && f.direct:
		return usage(c, "--borrow with --direct: want one of them")
	case f.borrow && f.transport == fi.TransportUDP:
		return usage(c, "--transport udp opens sockets here: want no --borrow, or leave the transport to the daemon")
	}
	attr.Borrow = f.borrow
	return nil
}

// printLent shows the queues that a daemon can lend.
func printLent(w io.Writer, queues []host.LentQueue) {
	if len(queues) > 0 {
		fmt.Fprintln(w, "\nQUEUE\tSTATE\tLENT\tTO")
	}
	for _, q := range queues {
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\n", q.Queue, q.State, q.Lends, orDash(ifThen(q.PID != 0, strconv.Itoa(q.PID))))
	}
}

// borrowedBy is the queue that a guest has borrowed, as stat shows it.
func borrowedBy(g *control.Guest) string {
	if g.Queue == nil {
		return "-"
	}
	return strconv.Itoa(*g.Queue)
}
