// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// regionEntry is a region as list prints it. The key is text, since JSON readers keep
// fewer than 64 bits of a number.
type regionEntry struct {
	Name    string   `json:"name"`
	Key     string   `json:"key"`
	Size    uint64   `json:"size"`     // bytes
	Access  []string `json:"access"`   // "read", "write", as in the daemon's own list
	AuthKey bool     `json:"auth_key"` // a command has to prove an authorization key, by --auth-key-file
}

func (a *app) listCmd() *cobra.Command {
	var link linkFlags
	c := &cobra.Command{
		Use:   "list PEER",
		Short: "List the memory regions that a peer publishes",
		Long: `list shows the catalogue of a peer: the regions that it publishes, with their names,
keys, sizes and rights. (key) after the rights means that a command has to prove the
region's authorization key, by --auth-key-file. A peer of an older release does not say.`,
		Example: `  xdpfab list 10.0.0.2
  xdpfab list 02:00:00:00:00:0b/1 -i eth0 --json`,
		Args: exactArgs("PEER"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			cl, err := a.connect(c, &link, args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, cl.close()) }()
			list, err := cl.peer.Regions(c.Context())
			if err != nil {
				return err
			}
			return a.printRegions(list)
		},
	}
	link.register(c)
	a.jsonFlag(c)
	return c
}

func (a *app) printRegions(list []xdpfab.RemoteRegion) error {
	entries := []regionEntry{}
	for _, r := range list {
		entries = append(entries, regionEntry{Name: r.Name, Key: fmt.Sprintf("%#016x", r.Key), Size: r.Size,
			Access: rights(r.Access), AuthKey: r.Keyed})
	}
	return a.print(entries, func(w io.Writer) {
		if len(entries) == 0 {
			fmt.Fprintln(w, "no regions: the peer publishes none; `xdpfab region create NAME=SIZE` there adds one")
			return
		}
		fmt.Fprintln(w, "NAME\tKEY\tBYTES\tACCESS")
		for _, e := range entries {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", printable(e.Name), e.Key, e.Size,
				accessOf(control.Region{Access: e.Access, AuthKey: e.AuthKey}))
		}
	})
}

// rights are the names of rights, as all tables have them.
func rights(a mr.Access) []string {
	names := []string{}
	if a&mr.RemoteRead != 0 {
		names = append(names, "read")
	}
	if a&mr.RemoteWrite != 0 {
		names = append(names, "write")
	}
	return names
}

// printable quotes a peer's name if it could control the terminal.
func printable(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
