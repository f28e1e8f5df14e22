// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// pingReport is the JSON output of ping.
type pingReport struct {
	Peer      string                `json:"peer"`
	Interface string                `json:"interface"`
	What      string                `json:"what"`
	Sent      int                   `json:"sent"`
	Answered  int                   `json:"answered"`
	Lost      int                   `json:"lost"`
	Resent    uint64                `json:"frames_resent"`
	Seconds   float64               `json:"seconds"`
	RoundTrip histogram.Percentiles `json:"round_trip"`
}

type pingFlags struct {
	link     linkFlags
	region   string
	count    int
	interval time.Duration
	quiet    bool
}

func (a *app) pingCmd() *cobra.Command {
	var f pingFlags
	c := &cobra.Command{
		Use:   "ping PEER",
		Short: "Measure round trips to a peer",
		Long: `ping opens a session and measures round trips one after the other, through the
whole of both nodes: a look-up in the peer's catalogue or, with --region, an
atomic read of the region's first word. A frame that gets lost is sent again, so
losses show up as resent frames and long round trips. A round trip is lost only if the
peer is silent for --timeout or has restarted. ping ends after three lost round trips in
a row, or when the peer refuses one, for example because it may not read the region.

With --interval, ping prints a line for each round trip, otherwise a line each second.
A summary follows at the end, even if ping is interrupted.`,
		Example: `  xdpfab ping 10.0.0.2
  xdpfab ping 02:00:00:00:00:0b -i eth0 -c 100000 --region counters --progress manual
  xdpfab ping 10.0.0.2 -c 0 --interval 1s
  xdpfab ping 10.0.0.2 -c 10 --interval 1s --json`,
		Args: exactArgs("PEER"),
		RunE: func(c *cobra.Command, args []string) error { return a.ping(c, &f, args[0]) },
	}
	f.link.register(c)
	a.jsonFlag(c)
	c.Flags().StringVar(&f.region, "region", "", "read a word of this region")
	c.Flags().IntVarP(&f.count, "count", "c", 1000, "round trips; 0: until interrupted")
	c.Flags().DurationVar(&f.interval, "interval", 0, "pause between round trips; 0: none")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only the summary")
	return c
}

func (a *app) ping(c *cobra.Command, f *pingFlags, peer string) (err error) {
	if err := negative(c, "count", "interval"); err != nil {
		return err
	}
	defer a.whileRead()()
	cl, err := a.connect(c, &f.link, peer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	once, what, err := cl.roundTrip(c.Context(), f)
	if err != nil {
		return err
	}
	r := pingReport{Peer: peer, Interface: f.link.ifname, What: what}
	lines := &pingLines{out: io.Discard, each: f.interval >= leastInterval}
	if !a.json && !f.quiet {
		lines.out = flushed{a}
		fmt.Fprintf(lines.out, "ping %s over %s: %s\n", peer, r.Interface, what)
	}
	last := r.run(c.Context(), f, lines, once)
	if refused(last) && r.Sent == 0 {
		return last
	}
	r.Resent = cl.resent()
	err = a.print(&r, func(w io.Writer) { r.text(w, f.quiet) })
	switch {
	case refused(last):
		err = errors.Join(err, last)
	case r.Lost > 0:
		err = errors.Join(err, fmt.Errorf("%d of %d round trips lost: %w", r.Lost, r.Sent, last))
	}
	return err
}

// roundTrip chooses the kind of round trip to measure, and prepares it.
func (c *client) roundTrip(ctx context.Context, f *pingFlags) (once func(context.Context) error, what string,
	err error) {
	if f.region == "" {
		return func(ctx context.Context) error {
			// It does not matter whether the region exists: the peer has looked it up.
			if _, err := c.peer.Lookup(ctx, "ping"); !errors.Is(err, xdpfab.ErrNoRegion) {
				return err
			}
			return nil
		}, "catalogue look-up", nil
	}
	named := regionFlags{name: f.region}
	region, err := named.find(ctx, c.peer)
	w := xdpfab.WordAt[uint64](c.peer, region, 0)
	return func(ctx context.Context) error {
		_, err := w.Load(ctx)
		return f.link.denied(unadvised(withoutEffect(err)), region, "ping", mr.RemoteRead)
	}, "atomic read of a uint64 in " + f.region, err
}

// goneAfter is how many round trips in a row may be lost before ping ends: each lost
// one takes the whole --timeout.
const goneAfter = 3

// run measures until the count is reached, the context ends or the peer is gone,
// and returns the last failure.
func (r *pingReport) run(ctx context.Context, f *pingFlags, lines *pingLines, once func(context.Context) error) (
	last error) {
	h := histogram.New()
	begin := time.Now()
	row := 0 // of losses
	for (f.count == 0 || r.Sent < f.count) && ctx.Err() == nil && row < goneAfter {
		start := time.Now()
		err := once(ctx)
		if ctx.Err() != nil {
			break // interrupted in between: neither answered nor lost
		}
		if refused(err) {
			last = err
			break
		}
		r.Sent++
		took := time.Since(start)
		if err == nil {
			h.Record(took, 1)
			row = 0
		} else {
			r.Lost++
			row++
			last = err
		}
		lines.add(r.Sent, took, start.Add(took).Sub(begin), err)
		if f.interval > 0 && r.Sent != f.count {
			select {
			case <-ctx.Done():
			case <-time.After(f.interval):
			}
		}
	}
	r.Answered = r.Sent - r.Lost
	r.Seconds = time.Since(begin).Seconds()
	r.RoundTrip = h.Percentiles()
	return last
}

// refused reports whether the peer has answered, and does not do what was asked: it would
// say the same to the next request.
func refused(err error) bool { return err != nil && exitCode(err) == exitFailed }

// leastInterval is the pause from which on each round trip has a line.
const leastInterval = 10 * time.Millisecond

// pingLines prints what happens, as it happens: each round trip, or each second.
type pingLines struct {
	out   io.Writer
	each  bool
	since histogram.Histogram // of the second
	begun time.Duration       // from the beginning on
}

func (l *pingLines) add(number int, took, at time.Duration, err error) {
	switch {
	case err != nil:
		text, _, _ := strings.Cut(tell.Plain(err), ": likely causes:") // which the error at the end has
		fmt.Fprintf(l.out, "round trip %d: lost after %s: %s\n", number, show.Duration(int64(took)), text)
		return
	case l.each:
		fmt.Fprintf(l.out, "round trip %d: %s\n", number, show.Duration(int64(took)))
		return
	case l.since == (histogram.Histogram{}):
		l.since = histogram.New()
	}
	l.since.Record(took, 1)
	if at-l.begun >= time.Second {
		p := l.since.Percentiles()
		fmt.Fprintf(l.out, "%.0f s: %d round trips, p50 %s, p99 %s, max %s\n", at.Seconds(), p.Count,
			show.Duration(p.P50), show.Duration(p.P99), show.Duration(p.Max))
		l.since.Reset()
		l.begun = at
	}
}

func (r *pingReport) text(w io.Writer, head bool) {
	if head {
		fmt.Fprintf(w, "ping %s over %s: %s\n", r.Peer, r.Interface, r.What)
	}
	fmt.Fprintf(w, "%d round trips in %.3f s, %d lost, %d frames resent\n", r.Answered, r.Seconds, r.Lost, r.Resent)
	if r.Answered > 0 {
		fmt.Fprintln(w, "  min\tp50\tp90\tp99\tp99.9\tmax")
		p := &r.RoundTrip
		fmt.Fprint(w, "  ")
		for _, ns := range []int64{p.Min, p.P50, p.P90, p.P99, p.P999} {
			fmt.Fprintf(w, "%s\t", show.Duration(ns))
		}
		fmt.Fprintln(w, show.Duration(p.Max))
	}
}
