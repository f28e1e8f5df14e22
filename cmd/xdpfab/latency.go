// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"

	"github.com/xdpfab/xdpfab/internal/histogram"
)

// latencyText prints two aligned lines; the writer is a tabwriter.
func latencyText(w io.Writer, p *histogram.Percentiles) {
	fmt.Fprintln(w, "  min\tp50\tp90\tp99\tp99.9\tmax")
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", short(p.Min), short(p.P50), short(p.P90), short(p.P99), short(p.P999),
		short(p.Max))
}

// short prints nanoseconds with three digits or so, in µs unless they are many.
func short(ns int64) string {
	switch us := float64(ns) / 1e3; {
	case us < 10:
		return fmt.Sprintf("%.2f µs", us)
	case us < 100:
		return fmt.Sprintf("%.1f µs", us)
	case us < 10000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1f ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}
