// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// loadPoint is an open-loop run: operations are offered at a fixed rate, and an
// operation's latency counts from when it was due.
type loadPoint struct {
	Offered float64 `json:"offered"` // operations a second
	sample
}

// Loads that are offered, in operations a second.
var loads = []float64{1e4, 3e4, 1e5, 2e5, 5e5, 1e6, 2e6, 4e6, 8e6, 12e6, 16e6, 20e6, 24e6}

const loadTime = time.Second

// keepsUp is the least share of a load that must complete for it to count as carried.
const keepsUp = 0.97

// curve measures latency against offered load, up to the first load that is not
// carried.
func (n *network) curve(ctx context.Context) (points []loadPoint, err error) {
	for _, load := range loads {
		fmt.Fprintf(os.Stderr, "load of %s M/s\n", number(load/1e6))
		c := fab("open loop", fabRun{window: fullWindow, words: spreadWords, rate: load, seconds: loadTime})
		s, err := n.run(ctx, c)
		if err == nil && s.Disturbed != "" {
			s, err = n.run(ctx, c)
		}
		if err != nil {
			return nil, err
		}
		points = append(points, loadPoint{Offered: load, sample: s})
		if s.OpsPerSecond() < keepsUp*load {
			break
		}
	}
	return points, nil
}

func printCurve(out io.Writer, points []loadPoint) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nLatency against offered load (open loop, from when an operation was due), µs")
	fmt.Fprintln(w, "  offered M/s\tcarried M/s\tp50\tp90\tp99\tp99.9\tp99.99\t")
	for _, p := range points {
		l := p.Latency
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", number(p.Offered/1e6), number(p.OpsPerSecond()/1e6),
			number(float64(l.P50)/1e3),
			number(float64(l.P90)/1e3), number(float64(l.P99)/1e3), number(float64(l.P999)/1e3),
			number(float64(l.P9999)/1e3), p.Disturbed)
	}
	w.Flush()
}
