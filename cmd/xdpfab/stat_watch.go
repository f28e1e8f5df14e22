// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
)

// statView returns what shows one report after the other, and what ends that.
func (a *app) statView(f *statFlags) (view func(*statReport) error, end func() error) {
	whole := func(r *statReport) error { return a.print(r, func(w io.Writer) { r.text(w, f.all) }) }
	end = func() error { return nil }
	switch {
	case a.json || f.watch == 0:
		return whole, end
	case a.rows != nil:
		s := &show.Screen{Out: flushed{a}, Rows: a.rows}
		return func(r *statReport) error { return s.Page(r.page(f)) }, s.End
	}
	return func(r *statReport) error {
		if r.Rates == nil { // the first one, or that of another daemon
			return whole(r)
		}
		return a.print(r, r.changes)
	}, end
}

// page is a report that stands on a screen until the next one.
func (r *statReport) page(f *statFlags) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  every %v; Ctrl-C ends\n", time.Now().Format(time.TimeOnly), f.watch)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	r.text(w, f.all)
	_ = w.Flush() // into memory
	return b.Bytes()
}

// changes prints the counters that have changed since the report before, with the time.
func (r *statReport) changes(w io.Writer) {
	now, none := time.Now().Format(time.TimeOnly), true
	for _, name := range slices.Sorted(maps.Keys(r.Counters)) {
		if rate := r.Rates[name]; rate != 0 {
			none = false
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f/s\n", now, name, r.Counters[name], rate)
		}
	}
	if none {
		fmt.Fprintf(w, "%s\tnothing has changed\n", now)
	}
}
