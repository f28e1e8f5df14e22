// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/xdpfab/xdpfab/internal/advise"
	"github.com/xdpfab/xdpfab/internal/nic"
)

// adviceReport is the JSON output of info --advise.
type adviceReport struct {
	Kernel    string           `json:"kernel"`
	Interface string           `json:"interface"` // empty if none was named
	Checks    []advise.Finding `json:"checks"`
}

// advice compares this machine, and an interface if one is named, with the guide.
func advice(args []string, p *probed) (r adviceReport, err error) {
	system, err := nic.Machine()
	if err != nil {
		return r, err
	}
	r.Kernel = system.Kernel
	var named *nic.Interface
	var settings nic.Settings
	if len(args) == 1 {
		i, err := nic.Inspect(args[0])
		if err != nil {
			return r, interfaceError(err)
		}
		named, settings, r.Interface = &i, nic.SettingsOf(i.Index), i.Name
	}
	s := advise.Take(os.DirFS("/"), system, named, settings)
	if p != nil {
		s.Use(advise.Bound{XDP: p.XDP, Copy: p.Copy, Chunk: p.Chunk, Refused: p.Refused, By: p.by()})
	}
	r.Checks = advise.Check(s)
	return r, nil
}

// text prints one line for each check, and a summary.
func (r *adviceReport) text(w io.Writer) {
	count, unnamed := map[advise.Verdict]int{}, 0
	fmt.Fprintln(w, "CHECK\tVERDICT\tFOUND\tEXPECTED, AND HOW TO GET IT")
	for _, f := range r.Checks {
		if f.Reason == advise.Unnamed {
			unnamed++
			continue
		}
		count[f.Verdict]++
		found, then := f.Found, ""
		switch f.Verdict {
		case advise.NotApplicable, advise.Unknown:
			found = f.Reason
		case advise.Advice:
			then = f.Expected + ": " + f.Command
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s\t%s\t%s\t%s", f.Check, f.Verdict, found, then), "\t"))
	}
	fmt.Fprintf(w, "\n%d ok, %d to look at, %d not applicable, %d unknown; docs/tuning.md says why\n",
		count[advise.OK], count[advise.Advice], count[advise.NotApplicable], count[advise.Unknown])
	if unnamed > 0 {
		fmt.Fprintf(w, "%d checks more are of an interface: name one, as in `xdpfab info --advise eth0`; `ip link` "+
			"lists them\n", unnamed)
	}
}
