// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/histogram"
)

// Report is what a run has measured, and the JSON output of bench.
type Report struct {
	Config    *Config `json:"-"`
	Peer      string  `json:"peer"` // or several, with commas
	Interface string  `json:"interface"`
	XDP       string  `json:"xdp"`
	Copy      string  `json:"copy"`
	Progress  string  `json:"progress"`
	Mode      string  `json:"mode"`
	Op        string  `json:"op"`
	Datatype  string  `json:"datatype,omitempty"` // of an atomic operation
	Size      uint64  `json:"size"`               // bytes of an operation
	PostWords int     `json:"words_per_post"`     // each an operation
	Both      bool    `json:"both,omitempty"`     // half of the endpoints go the other way
	Endpoints int     `json:"endpoints"`
	Window    int     `json:"window"`          // posts in flight for each endpoint
	Words     int     `json:"different_words"` // that the operations go to in turn

	Ops            uint64                `json:"ops"` // measured
	Seconds        float64               `json:"seconds"`
	Interrupted    bool                  `json:"interrupted,omitempty"` // whether a signal ended the measurement early
	OpsPerSecond   float64               `json:"ops_per_second"`
	BytesPerSecond float64               `json:"bytes_per_second"` // of elements, messages and copies
	Latency        histogram.Percentiles `json:"latency"`          // from posting to completion; all 0 for a stream
	Percentiles    []Percentile          `json:"percentiles,omitempty"`
	Resent         uint64                `json:"frames_resent,omitempty"`
	OpsPerPacket   float64               `json:"ops_per_packet,omitempty"` // not known through a daemon
	AllocsPerOp    float64               `json:"allocs_per_op"`            // of the whole process
	Peers          []PeerReport          `json:"peers,omitempty"`          // if there are several

	Verification string `json:"verification"`      // "sum", "bytes", "messages" or "none"
	Acknowledged uint64 `json:"acknowledged_adds"` // with the warm-up
	Growth       uint64 `json:"growth"`            // of the region's words
	Messages     uint64 `json:"messages,omitempty"`
	Verified     bool   `json:"verified"`

	counted bool // frames are counted here, not by a daemon
}

// Percentile is one that was asked for.
type Percentile struct {
	Percent float64 `json:"percent"`
	NS      int64   `json:"ns"`
}

// PeerReport is the part of one of several peers.
type PeerReport struct {
	Peer         string  `json:"peer"`
	Ops          uint64  `json:"ops"`
	OpsPerSecond float64 `json:"ops_per_second"`
}

// fill takes the figures of the measurement.
func (r *Report) fill(begin, end snapshot, all histogram.Histogram) {
	c := r.Config
	r.Op, r.Size, r.PostWords, r.Both, r.Endpoints, r.Window = c.Op, c.Size, c.Words, c.Both, c.Endpoints, c.Window
	if r.Mode = "latency"; c.Stream {
		r.Mode = "throughput"
	}
	if c.Atomic() {
		r.Datatype = c.Datatype.String()
	}
	r.Seconds = end.at.Sub(begin.at).Seconds()
	r.OpsPerSecond = float64(r.Ops) / r.Seconds
	r.BytesPerSecond = r.OpsPerSecond * float64(c.Size)
	r.Latency = all.Percentiles()
	for _, p := range c.Percentiles {
		r.Percentiles = append(r.Percentiles, Percentile{p, int64(all.At(p))})
	}
	r.AllocsPerOp = float64(end.mallocs-begin.mallocs) / float64(max(r.Ops, 1))
	since := func(name string) uint64 { return end.sent[name] - begin.sent[name] }
	if packets := since("packets_sent"); packets > 0 {
		r.counted, r.Resent = true, since("frames_resent")
		if c.Atomic() {
			r.OpsPerPacket = float64(since("ops_sent")) / float64(packets)
		}
	}
}

// add takes the result of the check at a peer. A run that has measured nothing verifies
// nothing.
func (r *Report) add(t *target, v Verification) {
	r.Verification, r.Verified = v.What, v.What != "" && r.Ops > 0
	if !r.Verified {
		r.Verification = "none"
	}
	r.Words = t.words
	r.Acknowledged += v.Acknowledged
	r.Growth += v.Growth
	r.Messages += v.Sent
	p := PeerReport{Peer: t.Addr}
	for _, w := range t.workers {
		p.Ops += w.measured
	}
	p.OpsPerSecond = float64(p.Ops) / r.Seconds
	r.Peers = append(r.Peers, p)
}

// Text prints a report for a person; the writer is a tabwriter.
func (r *Report) Text(w io.Writer) {
	carrier := "UDP sockets"
	if r.XDP != "" {
		carrier = fmt.Sprintf("%s XDP, %s", r.XDP, r.Copy)
	}
	fmt.Fprintf(w, "%s of %s on %s over %s (%s, %s progress)\n", r.Mode, r.what(), r.Peer, r.Interface, carrier,
		r.Progress)
	interrupted := ""
	if r.Interrupted {
		interrupted = ", then interrupted"
	}
	fmt.Fprintf(w, "%s, window %d", show.Plural(r.Endpoints, "endpoint"), r.Window)
	if r.Datatype != "" {
		to := "the same each time"
		if r.Words > 1 {
			to = fmt.Sprintf("of %d in turn", r.Words)
		}
		fmt.Fprintf(w, ", %s a post, %s", show.Plural(r.PostWords, "word"), to)
	}
	fmt.Fprintf(w, "\n%d operations in %.2f s%s: %s/s, %s/s\n", r.Ops, r.Seconds, interrupted,
		show.Count(r.OpsPerSecond), show.Size(uint64(r.BytesPerSecond)))
	if len(r.Peers) > 1 {
		for _, p := range r.Peers {
			fmt.Fprintf(w, "  %s: %s/s\n", p.Peer, show.Count(p.OpsPerSecond))
		}
	}
	if r.Latency.Count > 0 {
		names, values := r.columns()
		fmt.Fprintln(w, "  "+strings.Join(names, "\t"))
		fmt.Fprintln(w, "  "+strings.Join(values, "\t"))
	}
	if r.OpsPerPacket > 0 {
		fmt.Fprintf(w, "%.1f operations a packet, ", r.OpsPerPacket)
	}
	if r.counted {
		fmt.Fprintf(w, "%d frames resent, ", r.Resent)
	}
	fmt.Fprintf(w, "%.2f allocations an operation\n", r.AllocsPerOp)
	fmt.Fprintln(w, r.verdict())
}

// what names the operations.
func (r *Report) what() string {
	name := r.Op
	if r.Datatype != "" && r.Datatype != "uint64" {
		name += " on " + r.Datatype
	}
	if r.Both {
		name += " and the other way"
	}
	if r.Size != 8 {
		name += " of " + show.Size(r.Size)
	}
	return name
}

// columns are those of the latency: min, what was asked for or what is usual, and max.
func (r *Report) columns() (names, values []string) {
	list := r.Percentiles
	if len(list) == 0 {
		l := &r.Latency
		list = []Percentile{{50, l.P50}, {90, l.P90}, {99, l.P99}, {99.9, l.P999}}
	}
	names, values = []string{"min"}, []string{show.Duration(r.Latency.Min)}
	for _, p := range list {
		names = append(names, "p"+strconv.FormatFloat(p.Percent, 'g', -1, 64))
		values = append(values, show.Duration(p.NS))
	}
	return append(names, "max"), append(values, show.Duration(r.Latency.Max))
}

func (r *Report) verdict() string {
	switch r.Verification {
	case "sum":
		return fmt.Sprintf("verified: the words grew by %d, as many adds were acknowledged, warm-up included", r.Growth)
	case "bytes":
		return "verified: the region and this side have the same bytes"
	case "messages":
		return fmt.Sprintf("verified: %d messages were sent, and received once each, in their order", r.Messages)
	}
	if r.Ops == 0 {
		return "not verified: no operation was measured: let it run for longer"
	}
	return fmt.Sprintf("not verified: the sum of the words does not tell what %s did", r.what())
}

// Row prints a report as a row of a table of several, whose columns have one width; the
// first one prints its head.
func (r *Report) Row(w io.Writer, first bool) error {
	names, values := r.columns()
	if r.Latency.Count == 0 {
		names, values = nil, nil
	}
	head := slices.Concat([]string{"SIZE", "OPS", "OPS/S", "BYTES/S"}, names, []string{"VERIFIED"})
	cells := slices.Concat([]string{show.Size(r.Size), strconv.FormatUint(r.Ops, 10), show.Count(r.OpsPerSecond),
		show.Size(uint64(r.BytesPerSecond))}, values, []string{r.Verification})
	var text strings.Builder
	if first {
		fmt.Fprintf(&text, "%s of %s on %s over %s\n", r.Mode, r.Op, r.Peer, r.Interface)
		text.WriteString(line(head))
	}
	text.WriteString(line(cells))
	_, err := io.WriteString(w, text.String())
	return err
}

// line aligns cells that are printed at different times.
func line(cells []string) string {
	var b strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&b, "%-11s", c)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// CSV returns the names of a report's fields, and their values.
func (r *Report) CSV() (names, values []string) {
	add := func(name string, v any) {
		names, values = append(names, name), append(values, fmt.Sprint(v))
	}
	add("peer", r.Peer)
	add("interface", r.Interface)
	add("mode", r.Mode)
	add("op", r.Op)
	add("datatype", r.Datatype)
	add("size_bytes", r.Size)
	add("words_per_post", r.PostWords)
	add("endpoints", r.Endpoints)
	add("window", r.Window)
	add("ops", r.Ops)
	add("seconds", fixed(r.Seconds, 6))
	add("ops_per_second", fixed(r.OpsPerSecond, 0))
	add("bytes_per_second", fixed(r.BytesPerSecond, 0))
	l := &r.Latency
	add("min_ns", l.Min)
	list := r.Percentiles
	if len(list) == 0 {
		list = []Percentile{{50, l.P50}, {90, l.P90}, {99, l.P99}, {99.9, l.P999}}
	}
	for _, p := range list {
		add("p"+strconv.FormatFloat(p.Percent, 'g', -1, 64)+"_ns", p.NS)
	}
	add("max_ns", l.Max)
	add("frames_resent", known(r.counted, r.Resent))
	add("ops_per_packet", known(r.OpsPerPacket > 0, fixed(r.OpsPerPacket, 2)))
	add("verification", r.Verification)
	return names, values
}

// fixed is a number without an exponent, which not every program reads, and with as many
// decimals in each row.
func fixed(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

// known returns an empty field in place of what is not known.
func known(is bool, v any) any {
	if !is {
		return ""
	}
	return v
}
