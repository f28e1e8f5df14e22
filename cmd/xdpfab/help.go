// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The help of a command shows its own flags first, and behind them those that all
// commands have which reach a peer.

// wayFlag marks the flags of linkFlags.
const wayFlag = "xdpfab/way"

func init() {
	cobra.AddTemplateFunc("ownFlags", func(c *cobra.Command) string { return flagsOf(c, false) })
	cobra.AddTemplateFunc("wayFlags", func(c *cobra.Command) string { return flagsOf(c, true) })
	cobra.AddTemplateFunc("exitCodes", exitCodes)
}

// helpWidth is the width of the flags in help, columns.
const helpWidth = 100

// flagsOf describes those flags of a command that belong to linkFlags, or else the
// others.
func flagsOf(c *cobra.Command, way bool) string {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if (f.Annotations[wayFlag] != nil) == way {
			some.AddFlag(f)
		}
	})
	return strings.TrimRight(some.FlagUsagesWrapped(helpWidth), " \n")
}

// exitCodes are those of a command whose help has none of its own.
func exitCodes(c *cobra.Command) string {
	if strings.Contains(c.Long, "Exit codes:") {
		return ""
	}
	return `
Exit codes: 0 success; 1 refused, or not executed; 2 wrong usage; 3 the outcome is unknown;
4 no answer; 5 the interface, or privileges. "xdpfab --help" has more about them.
`
}

// usageTemplate is cobra's, with the flags in two parts, and the exit codes.
func usageTemplate(c *cobra.Command) string {
	two := strings.Replace(c.UsageTemplate(), "{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}",
		"{{ownFlags .}}{{with wayFlags .}}\n\nFlags for the interface, and the way to the peer:\n{{.}}{{end}}", 1)
	return two + "{{exitCodes .}}"
}
