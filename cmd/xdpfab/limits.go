// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// limitsText prints what is known of a driver, and how.
func limitsText(w io.Writer, driver string) {
	l, known := nic.LimitsOf(driver)
	if !known {
		fmt.Fprintf(w, "  known limits\tnone: `xdpfab doctor` prints what can be contributed\n")
		return
	}
	list := []string{l.XDP + " XDP"}
	if l.XDP == "lower" {
		list[0] = "native XDP on the interfaces below alone"
	}
	add := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(l.XDP == "native" && !l.Redirect, "no redirect to sockets")
	add(l.ZeroCopy, "zero-copy")
	add(l.MTU > 0, "MTU at most %d", l.MTU)
	add(l.FragsMTU == nic.Anyhow, "any MTU with fragments")
	add(l.FragsMTU > 0 && l.FragsMTU < nic.Anyhow, "MTU at most %d with fragments", l.FragsMTU)
	add(l.Channels != "", "channels: %s", l.Channels)
	add(len(l.Off) > 0, "off: %s", strings.Join(l.Off, ", "))
	for _, n := range l.Needs {
		add(true, "needs %s", n.What)
	}
	add(l.Note != "", "%s", l.Note)
	how := map[string]string{nic.Tried: "tried on", nic.BySource: "by its source in"}[l.Evidence]
	fmt.Fprintf(w, "  known limits\t%s (%s Linux %s)\n", strings.Join(list, "; "), how, l.Linux)
}
