// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// discovery is the output of info --fabric: what GetInfo found.
type discovery []fi.Info

// discover asks for everything, or for one interface; of daemons, for the one at the
// control socket, if that is given.
func discover(ctx context.Context, args []string, socket string) (discovery, error) {
	var hints fi.Info
	if hints.Interface.Daemon = socket; socket != "" {
		hints.Attach = fi.AttachAlways
	}
	if len(args) > 0 {
		hints.Domain.Name = args[0]
		if _, err := nic.Inspect(args[0]); err != nil { // GetInfo's error speaks of the attribute
			return nil, interfaceError(err)
		}
	}
	list, err := fi.GetInfo(ctx, &hints)
	if err != nil {
		return nil, interfaceError(err)
	}
	return list, nil
}

// text prints the infos as fi_info does: in short, or with every attribute.
func (d discovery) text(w io.Writer, full bool) {
	for n := range d {
		i := &d[n]
		if full {
			fmt.Fprint(w, i)
			continue
		}
		fmt.Fprintf(w, "provider: %s\n", i.Fabric.Provider)
		for _, line := range [][2]any{
			{"fabric", i.Fabric.Name}, {"domain", i.Domain.Name}, {"version", i.Fabric.ProviderVersion},
			{"type", i.Endpoint.Type}, {"protocol", i.Endpoint.Protocol}, {"address", i.Source}, {"caps", i.Caps},
		} {
			fmt.Fprintf(w, "    %v: %v\n", line[0], line[1])
		}
		if i.Interface.Daemon != "" {
			fmt.Fprintf(w, "    daemon: %s\n", i.Interface.Daemon)
		}
		if len(i.Missing) > 0 {
			fmt.Fprintf(w, "    missing: %s\n", strings.Join(i.Missing, "; "))
		}
	}
}
