// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
)

func (a *app) keptCmd() *cobra.Command {
	var f daemonFlags
	c := &cobra.Command{
		Use:   "kept",
		Short: "List and remove the regions that outlive their programs",
		Long: `kept lists the regions that a daemon keeps for programs. When a program has ended,
peers can still use its kept regions, until a program of the same user takes them back
or somebody removes them. A region that no program uses has - as its process. For the
daemon's own regions, see ` + "`xdpfab region`" + `.`,
		Example: `  xdpfab kept
  xdpfab kept --interface eth0 --json
  xdpfab kept remove counters`,
		Args: instead(map[string]string{"list": "`xdpfab kept` alone"}),
		RunE: func(c *cobra.Command, _ []string) error { return call(a, c, &f, "kept", nil, printAllKept) },
	}
	a.jsonFlag(c)
	f.register(c)
	c.AddCommand(a.keptRemoveCmd())
	return c
}

// withdrawCmd is the former name of kept remove.
func (a *app) withdrawCmd() *cobra.Command {
	c := a.keptRemoveCmd()
	c.Use, c.Hidden = "withdraw NAME", true
	return c
}

func (a *app) keptRemoveCmd() *cobra.Command {
	var f daemonFlags
	var owner string
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Have a daemon withdraw a region that outlives its program",
		Long: `remove makes a daemon withdraw a kept region that no program uses. From then on
operations of peers fail, and the contents are lost. Root, the daemon's own user and
the region's user may remove it.`,
		Example: `  xdpfab kept remove counters
  xdpfab kept remove counters --user alice --interface eth0`,
		Args: exactArgs("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			w := control.Withdraw{Name: args[0]}
			if owner != "" {
				uid, err := userID(owner)
				if err != nil {
					return usage(c, "%v", err)
				}
				w.UID = &uid
			}
			return call(a, c, &f, "withdraw", w, func(w io.Writer, k control.Kept) { printKept(w, []control.Kept{k}) })
		},
	}
	a.jsonFlag(c)
	f.register(c)
	c.Flags().StringVar(&owner, "user", "", "name or number of the region's user, if several have one of that name")
	return c
}

// userID returns the number of a user.
func userID(name string) (uint32, error) {
	if u, err := user.Lookup(name); err == nil {
		name = u.Uid
	}
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("user %q: want one that this machine knows, or a number", name)
	}
	return uint32(n), nil
}

func printAllKept(w io.Writer, list []control.Kept) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no regions are kept; `xdpfab stat regions` lists those that are served")
		return
	}
	printKept(w, list)
}

func printKept(w io.Writer, list []control.Kept) {
	fmt.Fprintln(w, "KEPT\tUSER\tBYTES\tENDPOINTS\tPROCESS")
	for _, k := range list {
		var endpoints []string
		for _, n := range k.Endpoints {
			endpoints = append(endpoints, strconv.Itoa(int(n)))
		}
		process := "-"
		if k.InUse {
			process = strconv.Itoa(k.PID)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", printable(k.Name), cmp.Or(k.User, strconv.Itoa(int(k.UID))), k.Bytes,
			orDash(strings.Join(endpoints, " ")), process)
	}
}
