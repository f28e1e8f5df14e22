// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// nodeEntry is an entry of the directory as JSON.
type nodeEntry struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"` // the preferred one first
	Regions   []string `json:"regions"`
}

func (a *app) nodesCmd() *cobra.Command {
	var (
		where string
		limit time.Duration
	)
	c := &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes of the cluster's directory",
		Long: `nodes lists the entries of the directory: the name of each node, its addresses, the
preferred one first, and the regions that it publishes. A command that takes a PEER
accepts the name of such a node, and dials its first address to which this machine has
a route.

The directory is a file, or etcd, where daemons announce themselves (xdpfabd
--directory). --directory names it, or else XDPFAB_DIRECTORY, or directory = "…" in
the configuration: see "xdpfab config --help". An entry says where to dial; it does
not promise that the node is running.`,
		Example: `  xdpfab nodes --directory /etc/xdpfab/nodes
  xdpfab nodes --directory etcd://10.0.0.1:2379/prod --json
  XDPFAB_DIRECTORY=etcd://10.0.0.1:2379/prod xdpfab ping node7`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			if limit <= 0 {
				return usage(c, "timeout %v: want more than 0", limit)
			}
			text := directoryOf(c, where, s)
			if text == "" {
				return usage(c, "no directory is named: want --directory with a file or etcd://HOST:PORT, "+
					"XDPFAB_DIRECTORY, or directory in the configuration")
			}
			d, err := readNames(c, text, limit)
			if err != nil {
				return err
			}
			list := []nodeEntry{}
			for _, n := range d.Nodes() {
				list = append(list, nodeEntry{n.Name, n.Addrs, append([]string{}, n.Regions...)})
			}
			return a.print(list, func(w io.Writer) {
				fmt.Fprintln(w, "NAME\tADDRESSES\tREGIONS")
				for _, n := range list {
					fmt.Fprintf(w, "%s\t%s\t%s\n", n.Name, strings.Join(n.Addresses, " "),
						orDash(strings.Join(n.Regions, " ")))
				}
			})
		},
	}
	c.Flags().StringVar(&where, "directory", "", directoryUsage)
	c.Flags().DurationVar(&limit, "timeout", defaultTimeout, "time for the directory to answer")
	a.jsonFlag(c)
	return c
}
