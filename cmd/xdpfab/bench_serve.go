// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func (a *app) benchServeCmd() *cobra.Command {
	var link linkFlags
	var mailbox int
	var size string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Be the other side of bench",
		Long: `serve answers the messages of ` + "`xdpfab bench --op send`" + ` and ` + "`--op tagged`" + ` at other
nodes, until it is interrupted. It serves a region named bench as well, so that no
daemon is needed for the other operations. Peers name the mailbox: PEER/7.`,
		Example: `  xdpfab bench serve -i eth1
  xdpfab bench 02:00:00:00:00:0b -i eth0 --op tagged
  xdpfab bench 02:00:00:00:00:0b/7 -i eth0 --region bench --op put --size 4KiB`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			bytes, err := show.ParseSize(size)
			if err != nil || bytes == 0 {
				return usage(c, "--memory: %v", errors.Join(err, errors.New("want more than 0")))
			}
			if mailbox < 1 || mailbox >= math.MaxUint16 {
				return usage(c, "--mailbox %d: want 1 to %d", mailbox, math.MaxUint16-1)
			}
			defer a.whileRead()()
			dom, err := a.serve(c, &link)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeAll(c.Context(), dom)) }()
			if _, err := dom.NewRegion("bench", int(bytes)); err != nil {
				return fmt.Errorf("--memory %s: %w", size, err)
			}
			box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: mailbox})
			if err != nil {
				return err
			}
			line := func(format string, args ...any) {
				_ = a.tell(format, args...) // a run goes on without its line
			}
			return errors.Join(a.tell("serving at %s", box.Name()),
				bench.Serve(c.Context(), dom, box, link.progress == fi.ProgressManual, line))
		},
	}
	link.register(c)
	c.Flags().IntVar(&mailbox, "mailbox", bench.Mailbox, "number of the mailbox at which peers ask")
	c.Flags().StringVar(&size, "memory", "1MiB", "size of the region named bench")
	return c
}

// atMailbox adds to the error of a dial that nobody serves endpoint 0 where bench serve
// is, which serves its region at its mailbox.
func (f *linkFlags) atMailbox(ctx context.Context, dom *xdpfab.Domain, err error, to wire.Addr) error {
	if !f.bench || !lacksEndpoint(err) || to.Endpoint != 0 {
		return err
	}
	to.Endpoint = bench.Mailbox
	p, no := dom.Dial(ctx, to.String())
	if no != nil {
		return err
	}
	err = fmt.Errorf("a program serves at %v, as `xdpfab bench serve` does: give that address: %w", to, err)
	return errors.Join(err, p.Close())
}

// tell prints a line at once, with the time.
func (a *app) tell(format string, args ...any) error {
	fmt.Fprintf(a.out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	return a.flush()
}
