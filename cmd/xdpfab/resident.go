// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/resident"
)

// pinRoot is the folder below which daemons keep resident regions by themselves. If it
// belongs to another user, such as the package's, a daemon adds a dash and the number of
// its own user.
const pinRoot = "/sys/fs/bpf/xdpfab"

// pinRoots returns pinRoot, and the folders of other users beside it.
func pinRoots() []string {
	others, _ := filepath.Glob(pinRoot + "-*") // no pattern of this form is wrong
	return append([]string{pinRoot}, others...)
}

// leftBelow lists the state below folders. A folder that is missing is an error if it is
// the only one.
func leftBelow(roots []string) (all []resident.Left, err error) {
	for _, root := range roots {
		some, err := resident.List(root)
		if err != nil && (len(roots) == 1 || !errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// withLeft adds to the error of a daemon that there is not which interfaces of this
// network namespace have resident regions that one has left.
func withLeft(err error) error {
	if !errors.Is(err, control.ErrNoDaemon) {
		return err
	}
	all, _ := nic.List()
	for i := range all {
		if folder := all[i].Left(); folder != "" {
			err = fmt.Errorf("%w; a daemon has left resident regions on %s, and the kernel serves them: the next "+
				"daemon there continues, or `xdpfab resident remove %s` ends them", err, all[i].Name, folder)
		}
	}
	return err
}

func (a *app) residentCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "resident",
		Short: "List or remove resident regions that a dead process left",
		Long: `The kernel keeps serving the resident regions of a daemon that was killed, until the
next daemon on the interface takes them back. These commands are for regions that no
daemon will take back: they hold memory, and the interface. Alone, resident lists the
folders, as ` + "`xdpfab resident list`" + ` does.`,
		Example: `  xdpfab resident
  xdpfab resident remove ` + pinRoot + `/4026531840/eth0`,
	}
	c.Args, c.RunE = unknownCommand, a.listResident
	a.jsonFlag(c)
	c.AddCommand(a.residentListCmd(), a.residentRemoveCmd())
	return c
}

func (a *app) residentListCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "list [FOLDER]",
		Short: "List the folders in which resident regions are kept",
		Long: `list shows the folders below FOLDER in which processes keep resident regions. Without
FOLDER, it looks below ` + pinRoot + ` and below ` + pinRoot + `-UID, which a
daemon of user UID uses if the first folder belongs to another user. STATE is "in use"
while a process uses the folder, "left" if that process died and the kernel serves the
regions, "lost: the interface is gone" if the next daemon of that name begins anew, and
"damaged" if nothing serves them.`,
		Example: "  xdpfab resident list",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(c, "unexpected argument %q: want one FOLDER at most", args[1])
			}
			return nil
		},
		RunE: a.listResident,
	}
	a.jsonFlag(c)
	return c
}

func (a *app) listResident(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		args = pinRoots()
	} else if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: want a folder, or none for all", args[0], syscall.ENOENT)
	}
	list, err := leftBelow(args)
	if err != nil {
		return entitled(err)
	}
	if list == nil {
		list = []resident.Left{} // not null in JSON
	}
	return a.print(list, func(w io.Writer) { printResident(w, list) })
}

// entitled adds to the error of a folder that this user may not use who may.
func entitled(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: want root, or the user of the process that made the folder: `sudo xdpfab resident list`",
		err)
}

func (a *app) residentRemoveCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "remove FOLDER",
		Short: "End the resident regions of a dead process",
		Long: `remove ends the resident state of a dead process in FOLDER: the contents of its
resident regions are lost, peers lose their sessions, and the interface is free again.
remove refuses a folder that a process uses.`,
		Example: "  xdpfab resident remove " + pinRoot + "/4026531840/eth0",
		Args:    exactArgs("FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			if !filepath.IsAbs(args[0]) {
				return usage(c, "%q is no absolute path: want the folder as `xdpfab resident list` shows it", args[0])
			}
			err := resident.RemoveFolder(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %w: see `xdpfab resident list`", args[0], syscall.ENOENT)
			}
			return entitled(err)
		},
	}
}

func printResident(w io.Writer, list []resident.Left) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no process keeps resident regions, and none has left any")
		return
	}
	fmt.Fprintln(w, "FOLDER\tINTERFACE\tSTATE\tREGIONS\tSESSIONS")
	for _, l := range list {
		state := "damaged"
		switch {
		case l.InUse:
			state = "in use"
		case l.Ended:
			state = "lost: the interface is gone"
		case l.Trouble != "":
			state = "damaged: " + l.Trouble
		case l.Whole:
			state = "left"
		}
		var names []string
		for _, n := range l.Regions {
			names = append(names, printable(n))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.Folder, orDash(printable(l.Interface)), state,
			orDash(strings.Join(names, " ")), strconv.Itoa(l.Sessions))
	}
}
