// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/way"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/diagnose"
)

// patience is how long diagnose waits for each answer of the peer, unless --timeout or
// the configuration says otherwise.
const patience = 2 * time.Second

func (a *app) diagnoseCmd() *cobra.Command {
	var link linkFlags
	c := &cobra.Command{
		Use:   "diagnose PEER",
		Short: "Find out why a peer does not answer",
		Long: `diagnose tries the way to a peer step by step: this node's interface, its daemon or
privileges, addresses, route, the peer's neighbour entry, a session over the
encapsulation of PEER and over the other one, the peer's UDP port, round trips,
regions, queues and the lengths of packets that pass. Each line has the step's name,
its verdict, the time it took, and the result; a failure is followed by its remedy.
The last lines name the cause.

The verdict "doubtful" means that the step alone proves nothing. "left out" means that
the step was impossible; the line says why. diagnose changes no memory. It goes through
this node's daemon if there is one. Without a daemon and without privileges, diagnose
tries an IP address with UDP sockets, and leaves raw Ethernet out.

Exit codes: 0 the peer answers, and no step has failed; 1 it answers, and something
else is wrong; 4 it does not answer; 5 the cause is on this node.`,
		Example: `  xdpfab diagnose 10.0.0.2
  xdpfab diagnose 02:00:00:00:00:0b -i eth0 --json`,
		Args: exactArgs("PEER"),
		RunE: func(c *cobra.Command, args []string) error { return a.diagnose(c, &link, args[0]) },
	}
	link.register(c)
	timeout := c.Flags().Lookup("timeout")
	timeout.Usage, timeout.DefValue = "time to wait for each answer", patience.String()
	a.jsonFlag(c)
	return c
}

func (a *app) diagnose(c *cobra.Command, f *linkFlags, peer string) error {
	by, err := a.course(c, f, peer)
	if errors.Is(err, control.ErrSilent) { // the daemon is this node's
		return interfaceError(err)
	}
	if err != nil {
		return err
	}
	if s, err := a.settings(); err == nil && s.Get(settings.Timeout).Value == "" && !c.Flags().Changed("timeout") {
		f.giveUp = patience
	}
	q := diagnose.Question{Addr: by.to[0], Interface: f.ifname, Attr: by.attr, Timeout: f.giveUp, Control: f.control,
		Open: diagnose.Opener(a.open)}
	r, err := diagnose.Run(c.Context(), q, func(s *diagnose.Step) {
		if !a.json {
			s.Text(a.out)
			_ = a.flush()
		}
	})
	if err != nil {
		return err
	}
	if a.json {
		err = a.print(&r, nil)
	} else {
		r.Text(a.out)
	}
	if err != nil || r.OK {
		return err
	}
	code := map[diagnose.Place]int{diagnose.Here: exitInterface, diagnose.There: exitUnreachable,
		diagnose.Part: exitFailed}[r.Failed]
	err = fmt.Errorf("%s: %w: %s", peer, errDiagnosed, r.Cause)
	if other := way.Instead(f.ifname, by.to[0]); other != "" && by.chosen.Why == "" {
		err = fmt.Errorf("%w; the route to %v is by %s: want -i %s, or no -i", err, by.to[0].IP, other, other)
	}
	return &codeError{err, code}
}

var errDiagnosed = errors.New("the way to the peer is not in order")
