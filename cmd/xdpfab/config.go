// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
)

// configReport is the JSON output of config.
type configReport struct {
	Settings []settings.Value `json:"settings"`
	Files    []configFile     `json:"files"` // the one that takes precedence first
}

// configFile is a file that was looked for.
type configFile struct {
	Path string `json:"path"`
	Read bool   `json:"read"`
}

// defaults are the settings that nothing sets.
var defaults = []settings.Value{
	{Key: settings.Interface, From: "default: the one that leads to the peer"},
	{Key: settings.Control, From: "default: the socket of the interface's daemon"},
	{Key: settings.Directory, From: "default: none"},
	{Key: settings.Timeout, Value: defaultTimeout.String(), From: "default"},
	{Key: settings.AuthKey, From: "default: none"},
	{Key: settings.Transport, Value: "auto", From: "default"},
}

func (a *app) configCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the client's configuration, and where each value came from",
		Long: `config prints the settings of the commands that reach a peer or a daemon. Flags take
precedence over environment variables, then come the user's file and the machine's file:

  --interface      XDPFAB_INTERFACE   interface = "eth1"
  --control        XDPFAB_CONTROL     control = "/run/xdpfabd/eth1.sock"
  --directory      XDPFAB_DIRECTORY   directory = "etcd://10.0.0.1:2379/prod"
  --timeout        XDPFAB_TIMEOUT     timeout = "2s"
  --auth-key-file  XDPFAB_AUTH_KEY_FILE
                                      auth-key-file = "/etc/xdpfab/ledger.key"
  --transport      XDPFAB_TRANSPORT   transport = "udp"

The user's file is ~/.config/xdpfab/config.toml, or xdpfab/config.toml below
XDG_CONFIG_HOME; the machine's file is ` + settings.System + `. A file can also give
peers short names. These take precedence over names in the directory, which take
precedence over names of hosts. The value is written like a line of a directory file:
addresses, separated by commas, and optionally names of regions. The preferred address
comes first.

  [peers]
  node7 = "10.0.0.7"
  node8 = "10.0.0.8,02:00:00:00:00:0b counters"

If neither an interface nor a control socket is set, a command uses the interface on
the route to the peer, through its daemon if there is one. For a MAC address, a command
uses the interface of the only daemon, the interface on which the kernel knows the peer,
or the only interface that is up. --verbose says which interface it is, and why. If one
place sets both, the daemon at the control socket has to serve that interface.`,
		Example: `  xdpfab config
  xdpfab config --json
  XDPFAB_INTERFACE=eth1 xdpfab config`,
		Args: instead(map[string]string{"set": "for an editor, on one of the files that `xdpfab config` names"}),
		RunE: func(*cobra.Command, []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			r := configReport{Settings: effective(s), Files: []configFile{}}
			for _, path := range a.files {
				r.Files = append(r.Files, configFile{path, settings.Readable(path)})
			}
			return a.print(&r, r.text)
		},
	}
	a.jsonFlag(c)
	return c
}

// effective returns the settings in force: those that are set, and the defaults of the
// others.
func effective(s *settings.Settings) (list []settings.Value) {
	for _, d := range defaults {
		if v := s.Get(d.Key); v.Value != "" {
			d = v
		}
		list = append(list, d)
	}
	for _, v := range s.All() {
		if strings.Contains(v.Key, ".") {
			list = append(list, v)
		}
	}
	return list
}

// read is the state of a file, for people.
var read = map[bool]string{true: "read", false: "is not there, or not for this user"}

func (r *configReport) text(w io.Writer) {
	fmt.Fprintln(w, "KEY\tVALUE\tFROM")
	for _, v := range r.Settings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key, orDash(v.Value), v.From)
	}
	fmt.Fprintln(w)
	for _, f := range r.Files {
		fmt.Fprintf(w, "%s\t%s\n", f.Path, read[f.Read])
	}
}
