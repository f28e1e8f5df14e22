// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/control"
)

func (a *app) regionCmd() *cobra.Command {
	c := a.listRegions(&cobra.Command{
		Use:   "region",
		Short: "List, create and remove regions of a running daemon",
		Long: `A daemon serves the regions that its configuration names. create and remove change them
while it runs; no session ends. Alone, region lists them as ` + "`xdpfab stat regions`" + ` does,
whose help explains the columns. Regions that programs have left are those of
` + "`xdpfab kept`" + `.`,
		Example: `  xdpfab region
  xdpfab region create scores=1MiB
  xdpfab region remove scores --interface eth0`,
	})
	c.Args = instead(map[string]string{"list": "`xdpfab region` alone", "add": "`xdpfab region create`",
		"delete": "`xdpfab region remove`", "rm": "`xdpfab region remove`", "withdraw": "`xdpfab region remove`"})
	c.AddCommand(a.changeCmd(&cobra.Command{
		Use:   "create NAME=SIZE[:OPTION,...]",
		Short: "Have a running daemon serve another region",
		Long: `create makes a daemon serve another region, described as for --region of xdpfabd. A
daemon that takes over serves it, too; a restarted daemon serves only the regions of
its configuration. Root and the daemon's own user may create regions.`,
		Example: `  xdpfab region create scores=1MiB
  xdpfab region create ledger=64KiB:backing=/var/lib/xdpfabd/ledger --interface eth0`,
		Args: oneRegion,
	}, "", func(arg string) (string, any) { return "create-region", control.CreateRegion{Region: arg} }))
	c.AddCommand(a.changeCmd(&cobra.Command{
		Use:   "remove NAME",
		Short: "Have a running daemon withdraw a region",
		Long: `remove makes a daemon withdraw a region. From then on operations of peers fail with an
error that says that the memory is gone. The contents are lost, except those of a file.
Root and the daemon's own user may remove regions.`,
		Example: `  xdpfab region remove scores
  xdpfab region remove scores --interface eth0`,
		Args: exactArgs("NAME"),
	}, "removed", func(arg string) (string, any) { return "remove-region", control.RemoveRegion{Name: arg} }))
	return c
}

// oneRegion wants the description of one region. The daemon knows the options.
func oneRegion(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return severalRegions(c, args)
	}
	if err := exactArgs("NAME=SIZE")(c, args); err != nil {
		return err
	}
	name, rest, is := strings.Cut(args[0], "=")
	if strings.Contains(name, ":") && strings.Contains(args[0], "backing=") {
		return nil // a file has a size of its own
	}
	if !is || name == "" {
		return usage(c, "%q: want NAME=SIZE[:OPTION,...], such as scores=1MiB", args[0])
	}
	size, options, _ := strings.Cut(rest, ":")
	if size == "" && strings.Contains(options, "backing=") {
		return nil // a file has a size of its own
	}
	if number, option, is := strings.Cut(size, ","); is {
		return usage(c, "%q: options stand behind a colon: %s=%s:%s", args[0], name, number, option)
	}
	if _, err := show.ParseSize(size); err != nil {
		return usage(c, "%q: %v", args[0], err)
	}
	return nil
}

// changeCmd completes a command that asks a daemon for a change of one region. did is
// what its output has before the table; empty for none.
func (a *app) changeCmd(c *cobra.Command, did string,
	ask func(arg string) (verb string, arguments any)) *cobra.Command {
	f := daemonFlags{changes: true}
	c.RunE = func(c *cobra.Command, args []string) error {
		verb, arguments := ask(args[0])
		return call(a, c, &f, verb, arguments, func(w io.Writer, r control.Region) {
			if did != "" {
				fmt.Fprintln(w, did)
			}
			fmt.Fprintln(w, "REGION\tKEY\tBYTES\tACCESS\tBACKING")
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", printable(r.Name), r.Key, r.Size, accessOf(r),
				printable(r.Backing))
		})
	}
	a.jsonFlag(c)
	f.register(c)
	return c
}
