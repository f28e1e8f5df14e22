// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

type demoFlags struct {
	keep   bool
	daemon string
}

// demoReport is the JSON output of demo.
type demoReport struct {
	Client     demoNode       `json:"client"`
	Server     demoNode       `json:"server"`
	Daemon     control.Status `json:"daemon"` // at the end
	Work       []workReport   `json:"work"`
	Reads      []atomicReport `json:"reads"` // of the results, by another process
	Ping       []pingReport   `json:"ping"`
	Latency    []bench.Report `json:"latency"`
	Throughput []bench.Report `json:"throughput"`
	Resident   []bench.Report `json:"resident"` // latency, then throughput; none on an old kernel
	C          cReport        `json:"c"`
	Exact      bool           `json:"exact"`
	Seconds    float64        `json:"seconds"`
}

type demoNode struct {
	Namespace string `json:"namespace"`
	MAC       string `json:"mac"`
	IP        string `json:"ip"`
}

func (a *app) demoCmd() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show all of it on this machine: needs root, leaves nothing behind",
		Long: `demo makes two network namespaces joined by a veth pair, starts xdpfabd in one
and runs clients in the other: processes of this same program. It checks that
increments, a lock, a leaderboard and a floating-point sum are exact, runs a
program in C through libfabric if gcc, libfabric and the provider are installed, then
measures round trips and throughput. demo touches no other interface.

The exit code is 0 only if every check succeeds. demo removes its namespaces and ends
its processes before it returns, even after Ctrl-C. With --keep it waits before it
cleans up, so that you can try things.`,
		Example: `  sudo xdpfab demo
  sudo xdpfab demo --keep
  sudo xdpfab demo --daemon ./bin/xdpfabd --json`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.demo(c, &f) },
	}
	a.jsonFlag(c)
	c.Flags().BoolVar(&f.keep, "keep", false, "wait for Ctrl-C before cleaning up")
	c.Flags().StringVar(&f.daemon, "daemon", "", "path of xdpfabd; default: in this program's folder")
	return c
}

// demo is a demonstration under way.
type demo struct {
	a      *app
	self   string
	binary string // of the daemon
	dir    string // for files
	pair   *veth.Pair
	daemon *daemon
	report demoReport
}

func (a *app) demo(c *cobra.Command, f *demoFlags) (err error) {
	start := time.Now()
	self, binary, err := f.programs(c)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return interfaceError(errors.New("demo needs root to make network namespaces: sudo xdpfab demo"))
	}
	dir, err := os.MkdirTemp("", "xdpfab-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	pair, err := veth.New(veth.Options{})
	if err != nil {
		return interfaceError(err)
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	d := &demo{a: a, self: self, binary: binary, dir: dir, pair: pair}
	socket := filepath.Join(dir, "control.sock")
	if d.daemon, err = startDaemon(c.Context(), pair.B, serverCPUs, binary, socket); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.daemon.close()) }()
	d.report.Client, d.report.Server = node(pair.A), node(pair.B)
	if err := d.run(d.daemon.with(c.Context())); err != nil {
		return err
	}
	d.report.Seconds = time.Since(start).Seconds()
	if err := a.print(&d.report, d.report.text); err != nil {
		return err
	}
	if f.keep {
		return d.wait(c.Context())
	}
	return nil
}

// programs finds this program and the daemon.
func (f *demoFlags) programs(c *cobra.Command) (self, binary string, err error) {
	if self, err = os.Executable(); err != nil {
		return "", "", err
	}
	binary = f.daemon
	if binary == "" {
		binary = filepath.Join(filepath.Dir(self), "xdpfabd")
	}
	if _, err := os.Stat(binary); err != nil {
		return "", "", usage(c, "no daemon: %v; build it, or name it with --daemon", err)
	}
	binary, err = filepath.Abs(binary)
	return self, binary, err
}

func node(s *veth.Side) demoNode {
	return demoNode{Namespace: s.Name, MAC: s.MAC.String(), IP: s.IP4.String()}
}

// client runs a command of this program in the client's namespace.
func (d *demo) client(ctx context.Context, result any, args ...string) error {
	if d.a.showProgress() {
		fmt.Fprintf(d.a.err, "\r\x1b[K  %s %s …", args[0], args[1])
		defer fmt.Fprint(d.a.err, "\r\x1b[K")
	}
	return runClient(ctx, d.pair.A, d.self, result, args...)
}

// rounds are how often each of the clients of a workload does it.
var rounds = map[string]string{"counter": "2000", "lock": "200", "max": "1000", "float": "1000"}

// run runs the clients one after the other, since an interface serves one process at a
// time.
func (d *demo) run(ctx context.Context) error {
	mac, ip := d.report.Server.MAC, d.report.Server.IP
	r := &d.report
	for _, w := range workloads {
		// Twice: the second run goes over UDP and starts from the values that the first
		// left.
		for _, peer := range []string{mac, ip} {
			var got workReport
			if err := d.client(ctx, &got, "work", w.name, peer, "--clients", "8", "--rounds",
				rounds[w.name]); err != nil {
				return err
			}
			r.Work = append(r.Work, got)
		}
		var read atomicReport
		datatype := map[string]string{"max": "int64", "float": "double"}[w.name]
		if datatype == "" {
			datatype = "uint64"
		}
		if err := d.client(ctx, &read, "atomic", "read", datatype, "--peer", mac, "--region", "demo", "--offset",
			fmt.Sprint(w.word*load.WordSize)); err != nil {
			return err
		}
		r.Reads = append(r.Reads, read)
	}
	if err := d.inC(ctx); err != nil {
		return err
	}
	if err := d.measure(ctx, mac, ip); err != nil {
		return err
	}
	var err error
	if r.Daemon, err = d.daemon.status(ctx); err != nil {
		return err
	}
	return r.check()
}

// measure fills in the figures: latency with the waiting thread making progress,
// throughput with as many operations in a frame as fit.
func (d *demo) measure(ctx context.Context, mac, ip string) error {
	r := &d.report
	for _, peer := range []string{mac, ip} {
		var p pingReport
		if err := d.client(ctx, &p, "ping", peer, "-c", "5000", "--progress", "manual"); err != nil {
			return err
		}
		r.Ping = append(r.Ping, p)
	}
	for _, progress := range []string{"manual", "auto"} {
		var b bench.Report
		if err := d.client(ctx, &b, "bench", mac, "--region", "demo", "--duration", "1s", "--progress",
			progress); err != nil {
			return err
		}
		r.Latency = append(r.Latency, b)
	}
	for _, op := range []string{"add", "fetch_add", "cswap"} {
		var b bench.Report
		err := d.client(ctx, &b, "bench", mac, "--region", "demo", "--mode", "throughput", "--op", op,
			"--duration", "1s",
			"--endpoints", "4", "--spread", "--progress", "manual")
		if err != nil {
			return err
		}
		r.Throughput = append(r.Throughput, b)
	}
	if kernel.Before(kernel.Resident) {
		return nil
	}
	return d.measureResident(ctx, mac)
}

// residentRegion is the daemon's region that the XDP program executes on.
const residentRegion = "resident"

// measureResident measures it, for comparison with the ordinary one.
func (d *demo) measureResident(ctx context.Context, mac string) error {
	for _, args := range [][]string{
		{"--progress", "manual"},
		{"--mode", "throughput", "--op", "add", "--endpoints", "4", "--spread", "--progress", "manual"},
	} {
		var b bench.Report
		if err := d.client(ctx, &b, append([]string{"bench", mac, "--region", residentRegion, "--duration", "1s"},
			args...)...); err != nil {
			return err
		}
		d.report.Resident = append(d.report.Resident, b)
	}
	return nil
}

// wait keeps the demo's network until an interrupt, for --keep.
func (d *demo) wait(ctx context.Context) error {
	fmt.Fprintf(d.a.err, `
try, as root, in another terminal:
  ip netns exec %[1]s %[2]s list %[3]s -i %[4]s
  ip netns exec %[1]s %[2]s atomic sum uint64 1 -i %[4]s --peer %[5]s --region demo
  %[2]s stat --control %[6]s
Ctrl-C cleans up
`, d.pair.A.Name, d.self, d.report.Server.IP, d.pair.A.IfName, d.report.Server.MAC, d.daemon.socket)
	if err := d.a.flush(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-d.daemon.ended:
	}
	return nil
}

// check decides the exit code. Each client has checked its own result already; check
// compares these with the values that another process, which only reads, has found.
func (r *demoReport) check() error {
	for i, w := range workloads {
		if want := r.Work[2*i+1].Want; len(r.Reads[i].Before) != 1 || r.Reads[i].Before[0] != want {
			return fmt.Errorf("%s: another process read %v, want %s", w.title, r.Reads[i].Before, want)
		}
	}
	for _, b := range slices.Concat(r.Latency, r.Throughput, r.Resident) {
		if !b.Verified {
			return fmt.Errorf("bench of %s: the words grew by %d, %d adds were acknowledged", b.Op, b.Growth,
				b.Acknowledged)
		}
	}
	if err := r.C.check(); err != nil {
		return err
	}
	r.Exact = true
	return nil
}

func (r *demoReport) text(w io.Writer) {
	i := r.Daemon.Interface
	fmt.Fprintf(w, "xdpfab demo: two network namespaces, joined by a veth\n\n")
	fmt.Fprintf(w, "  client\t%s\t%s\t%s\n", r.Client.Namespace, r.Client.MAC, r.Client.IP)
	fmt.Fprintf(w, "  xdpfabd\t%s\t%s\t%s\t%s XDP, %s, MTU %d\n", r.Server.Namespace, r.Server.MAC, r.Server.IP, i.XDP,
		i.Copy, i.MTU)
	fmt.Fprintf(w, "\nExact results: 8 concurrent clients, over Ethernet, then again over UDP\n\n")
	for n, work := range r.Work {
		encap := []string{"Ethernet", "UDP"}[n%2]
		fmt.Fprintf(w, "  %s\t%s\t%d x %d\t%s\t%.2f s\n", work.Title, encap, work.Clients, work.Rounds, work.Got,
			work.Seconds)
	}
	fmt.Fprintf(w, "  read back by another process\t\t\t%d of %d agree\n", len(r.Reads), len(r.Reads))
	r.C.text(w)
	fmt.Fprintf(w, "\nRound trips, one operation in flight\n\n")
	fmt.Fprintln(w, "  \tmin\tp50\tp90\tp99\tp99.9\tmax")
	for n, p := range r.Ping {
		row(w, []string{"catalogue look-up, Ethernet", "catalogue look-up, UDP"}[n], p.RoundTrip)
	}
	for _, b := range r.Latency {
		row(w, fmt.Sprintf("%s, %s progress", b.Op, b.Progress), b.Latency)
	}
	if len(r.Resident) > 0 {
		row(w, r.Resident[0].Op+", resident region", r.Resident[0].Latency)
	}
	fmt.Fprintf(w, "\nThroughput, %d endpoints, window %d, %d words\n\n", r.Throughput[0].Endpoints,
		r.Throughput[0].Window, r.Throughput[0].Words)
	for _, b := range r.Throughput {
		line(w, &b, b.Op)
	}
	if len(r.Resident) > 0 {
		line(w, &r.Resident[1], r.Resident[1].Op+", resident")
	}
	c := r.Daemon.Counters
	fmt.Fprintf(w, "\nThe daemon ran %d operations in %d frames for %d sessions.\n", c["ops_executed"],
		c["requests_executed"], c["sessions_accepted"])
	if n := c["resident_requests_executed"]; n > 0 {
		fmt.Fprintf(w, "Its XDP program ran %d operations in %d frames by itself.\n", c["resident_ops_executed"], n)
	}
	fmt.Fprintf(w, "Every check was exact. %.1f s\n", r.Seconds)
}

// line is a row of the table of throughput.
func line(w io.Writer, b *bench.Report, title string) {
	fmt.Fprintf(w, "  %s\t%s operations/s\t%.1f a packet\t%d frames resent\tsum exact\n", title,
		show.Count(b.OpsPerSecond), b.OpsPerPacket, b.Resent)
}

func row(w io.Writer, title string, p histogram.Percentiles) {
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", title, show.Duration(p.Min), show.Duration(p.P50),
		show.Duration(p.P90), show.Duration(p.P99),
		show.Duration(p.P999), show.Duration(p.Max))
}
