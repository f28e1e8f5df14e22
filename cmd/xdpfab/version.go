// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/internal/wire"
)

func (a *app) versionCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this program and of its protocols",
		Long: `version shows the release, the commit and the Go release that the program was built
from, and the versions of the protocols: wire, between nodes, with its extensions; attach,
between a daemon and the programs of its node; handover, between a daemon and the one
that takes over from it. ` + "`xdpfab --version`" + ` and ` + "`xdpfabd --version`" + `
print the same.`,
		Example: `  xdpfab version
  xdpfab version --json | jq -r .commit`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			r := build()
			return a.print(&r, func(w io.Writer) { _, _ = io.WriteString(w, r.Text("xdpfab")) })
		},
	}
	a.jsonFlag(c)
	return c
}

// build describes this program.
func build() version.Report {
	return version.NewReport(
		version.Protocol{Name: "wire", Version: wire.Version, Features: wire.Offered.Names()},
		version.Protocol{Name: "attach", Version: share.Version, Features: share.Features},
		version.Protocol{Name: "handover", Version: host.HandoverVersion})
}
