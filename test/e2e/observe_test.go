// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// percentiles are latencies as the client prints them, in nanoseconds.
type percentiles struct {
	Count int64
	Min   int64   `json:"min_ns"`
	P50   int64   `json:"p50_ns"`
	P90   int64   `json:"p90_ns"`
	P99   int64   `json:"p99_ns"`
	P999  int64   `json:"p99_9_ns"`
	Max   int64   `json:"max_ns"`
	Mean  float64 `json:"mean_ns"`
}

// checkPercentiles checks that all percentiles are there, in order, and
// possible.
func checkPercentiles(t *testing.T, p percentiles, count int64) {
	t.Helper()
	order := []int64{1000, p.Min, p.P50, p.P90, p.P99, p.P999, p.Max} // no round trip takes less than 1 µs
	if p.Count != count || !slices.IsSorted(order) || p.Mean < float64(p.Min) || p.Mean > float64(p.Max) {
		t.Errorf("latency %+v, want %d samples in order", p, count)
	}
}

// The counters of a daemon move by what clients do, no more and no less.
func TestStat(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB:key=0x11", "--region", "scores=8KiB:ro")
	stat := func() control.Status { return answer[control.Status](t, nil, "stat", "--control", d.socket) }
	first, granted := stat(), testnet.Granted(t)
	if first.PID != d.cmd.Process.Pid || first.Address != d.addr() || first.Progress != "auto" || first.Version == "" ||
		first.Interface.Name != net.B.IfName || first.Interface.XDP != granted.XDP || first.Interface.Copy != granted.Copy || first.Interface.MTU != 1500 {
		t.Errorf("status %+v", first)
	}
	if n := first.Interface.Queues; n < 1 || n > 1 && testnet.Borrowed(t) == nil {
		t.Errorf("%d queues; a veth has one, a NIC may have more", n)
	}
	if len(first.Regions) != 2 || first.Regions[1].Name != "scores" || first.Regions[1].Size != 8192 || !slices.Equal(first.Regions[1].Access, []string{"read"}) {
		t.Errorf("regions %+v", first.Regions)
	}
	grew := func(what string, from, to control.Status, name string, ok func(n uint64) bool) {
		t.Helper()
		before, known := from.Counters[name]
		if n := to.Counters[name] - before; !known || !ok(n) {
			t.Errorf("%s: %s grew by %d (counted: %v)", what, name, n, known)
		}
	}
	exactly := func(want uint64) func(uint64) bool { return func(n uint64) bool { return n == want } }
	some := func(n uint64) bool { return n > 0 && n < 1000 }

	xdpfab(t, net.A, []string{"atomic", "sum", "uint64", "1", "2", "3", "-i", net.A.IfName, "--peer", d.addr(), "--key", "0x11"}).wants(0)
	second := stat()
	for name, ok := range map[string]func(uint64) bool{
		"ops_executed": exactly(1), "requests_executed": exactly(1), "sessions_accepted": some, "hellos": some,
		"packets_received": some, "packets_sent": some, "xdp_redirect": some, "sessions_failed": exactly(0), "port_errors": exactly(0),
		"refused_bad_crc": exactly(0), "xdp_drop_version": exactly(0), "unknown_session": exactly(0),
	} {
		grew("one atomic", first, second, name, ok)
	}
	const line = `{"op":"sum","dt":"uint32","buf":"01000000"}` + "\n"
	xdpfab(t, net.A, []string{"atomic", "--batch", "-", "-i", net.A.IfName, "--peer", d.addr(), "--region", "r"}, input(strings.Repeat(line, 100))).wants(0)
	third := stat()
	grew("a look-up and a batch of 100", second, third, "ops_executed", exactly(101))
	if third.UptimeSeconds <= first.UptimeSeconds {
		t.Errorf("uptime went from %v to %v", first.UptimeSeconds, third.UptimeSeconds)
	}
	checkMetrics(t, d)
	xdpfab(t, nil, []string{"stat", "--control", d.socket + ".none"}).wants(4, "xdpfab: ", "start xdpfabd")
	if text := xdpfab(t, nil, []string{"stat", "--control", d.socket}).out.String(); !strings.Contains(text, "ops_executed") || !strings.Contains(text, "scores") {
		t.Errorf("stat prints %q", text)
	}
}

// checkMetrics checks that the metrics are well-formed, by Prometheus's own linter,
// and agree with stat.
func checkMetrics(t *testing.T, d *node) {
	t.Helper()
	text := d.metrics()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("metrics do not parse: %v", err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "xdpfab_") { // those of the Go runtime are not ours
			t.Errorf("metric %s: %s", p.Metric, p.Text)
		}
	}
	status, err := d.ask()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("xdpfab_ops_executed_total %d", status.Counters["ops_executed"]),
		`xdpfab_region_size_bytes{access="read",backing="anonymous",pages="small",region="scores"} 8192`,
		fmt.Sprintf("xdpfab_queues %d", status.Interface.Queues),
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("metrics lack %q in\n%s", want, text)
		}
	}
}

// metrics returns the metrics of a daemon, each of which the glossary has.
func (n *node) metrics() string {
	n.t.Helper()
	c, err := control.Dial(n.socket)
	if err != nil {
		n.t.Fatal(err)
	}
	defer c.Close()
	var text string
	if err := c.Call(n.t.Context(), "metrics", nil, &text); err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# HELP ") && strings.HasSuffix(line, " of the domain.\n") {
			n.t.Errorf("a counter without an explanation: %s", line)
		}
	}
	return text
}

// Clients can find out about a node over every encapsulation.
func TestListAndPing(t *testing.T) { ways(t, testListAndPing) }

func testListAndPing(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	viaDaemon(t, net.A)
	d := serve(t, net.B, "--region", "counters=64KiB", "--region", "scores=4KiB:ro,key=0x7", "--region", "in=8:wo")
	type region struct {
		Name, Key string
		Access    []string
		Size      uint64
	}
	type ping struct {
		Sent, Answered, Lost int
		RoundTrip            percentiles `json:"round_trip"`
	}
	for _, addr := range []string{d.addr(), net.B.IP4.String(), net.B.IP6.String()} {
		list := answer[[]region](t, net.A, "list", addr, "-i", net.A.IfName)
		if len(list) != 3 || list[0].Name != "counters" || list[0].Size != 64<<10 || !slices.Equal(list[0].Access, []string{"read", "write"}) || len(list[0].Key) != 18 ||
			!reflect.DeepEqual(list[1], region{"scores", "0x0000000000000007", []string{"read"}, 4096}) || list[2].Name != "in" || list[2].Size != 8 || !slices.Equal(list[2].Access, []string{"write"}) {
			t.Errorf("%s: list %+v", addr, list)
		}
		for _, flags := range [][]string{nil, {"--progress", "manual"}, {"--region", "counters"}} {
			p := answer[ping](t, net.A, append([]string{"ping", addr, "-i", net.A.IfName, "-c", "200"}, flags...)...)
			if p.Sent != 200 || p.Answered != 200 || p.Lost != 0 {
				t.Errorf("%s %v: %+v", addr, flags, p)
			}
			checkPercentiles(t, p.RoundTrip, 200)
		}
	}
	p := xdpfab(t, net.A, []string{"list", d.addr(), "-i", net.A.IfName})
	if text := p.out.String(); p.code() != 0 || !strings.HasPrefix(text, "NAME") || strings.Count(text, "\n") != 4 {
		t.Errorf("list prints %q", text)
	}
}

func TestInfo(t *testing.T) {
	testnet.Require(t)
	granted := testnet.Granted(t)
	queues := min(4, granted.Queues)
	net := testnet.NewPair(t, testnet.Options{Queues: queues})
	d := serve(t, net.B, "--region", "r=4KiB")
	type info struct {
		System struct {
			Kernel       string
			Capabilities []struct {
				Name string
				Have bool
			}
		}
		Interfaces []struct {
			Name, Driver, MAC string
			MTU               int
			Up                bool
			RXQueues          int            `json:"rx_queues"`
			MaxFrame          map[string]int `json:"max_frame"`
			Addresses         []string
			Attached          *struct{ Mode string }
			Plan              struct {
				Usable   bool
				Queues   int
				Problems []string
			}
		}
		Limits     map[string]uint64
		Operations []struct{ Op, Datatype string }
	}
	i := answer[info](t, net.A, "info", net.A.IfName)
	if len(i.Interfaces) != 1 {
		t.Fatalf("info %+v", i)
	}
	mine := i.Interfaces[0]
	if mine.Name != net.A.IfName || (mine.Driver == "veth") != (testnet.Borrowed(t) == nil) || mine.MAC != net.A.MAC.String() || mine.MTU != 1500 || !mine.Up || mine.RXQueues != queues ||
		mine.MaxFrame["udp4"] != 1472 || !slices.Contains(mine.Addresses, net.A.IP4.String()+"/24") || mine.Attached != nil ||
		!mine.Plan.Usable || mine.Plan.Queues != queues || len(mine.Plan.Problems) != 0 {
		t.Errorf("interface %+v", mine)
	}
	if i.Limits["datatypes"] != 20 || len(i.Operations) < 200 || i.System.Kernel == "" || len(i.System.Capabilities) < 3 || !i.System.Capabilities[0].Have {
		t.Errorf("limits %v, %d operations, system %+v", i.Limits, len(i.Operations), i.System)
	}
	theirs := answer[info](t, net.B, "info", net.B.IfName).Interfaces[0]
	if theirs.Attached == nil || theirs.Attached.Mode != granted.XDP || theirs.Plan.Usable || len(theirs.Plan.Problems) == 0 {
		t.Errorf("an interface that a daemon serves: %+v", theirs)
	}
	checkProbe(t, net.A, nil)
	checkProbe(t, net.B, d)
	xdpfab(t, net.B, []string{"info", "--probe", net.B.IfName}).wants(5, "in use by another xdpfab, process")
	if all := answer[info](t, net.A, "info"); len(all.Interfaces) != 2 {
		t.Errorf("%d interfaces, want %s and lo", len(all.Interfaces), net.A.IfName)
	}
	xdpfab(t, net.A, []string{"info", "nope0"}).wants(5, `"nope0": no such interface`)
	p := xdpfab(t, net.A, []string{"info", net.A.IfName}, unprivileged)
	p.wants(0)
	if text := p.out.String(); !regexp.MustCompile(`CAP_NET_ADMIN +no \(`).MatchString(text) || !strings.Contains(text, "cswap_ge") {
		t.Errorf("info without privilege prints %s", text)
	}
	d.end()
}

// checkProbe probes an interface. What it finds is what the daemon gets on it, which is
// asked instead if it serves the interface.
func checkProbe(t *testing.T, side *testnet.Side, d *node) {
	t.Helper()
	args, pid := []string{"--probe", side.IfName}, 0
	if d != nil {
		args, pid = append(args, "--control", d.socket), d.cmd.Process.Pid
	}
	type probed struct {
		Interfaces []struct {
			Probed struct {
				XDP, Copy     string
				Queues, Chunk int
				Refused       []string
				Daemon        int `json:"daemon_pid"`
			}
		}
	}
	granted := testnet.Granted(t)
	found := answer[probed](t, side, append([]string{"info"}, args...)...).Interfaces[0].Probed
	if found.XDP != granted.XDP || found.Copy != granted.Copy || found.Daemon != pid || found.Queues == 0 || found.Chunk < 2048 {
		t.Errorf("the probe of %s found %+v, want %s XDP, %s", side.Name, found, granted.XDP, granted.Copy)
	}
	if fastest := granted.XDP == "native" && granted.Copy == "zero-copy"; d == nil && fastest != (len(found.Refused) == 0) {
		t.Errorf("the probe of %s: refused %q", side.Name, found.Refused)
	}
	advice := xdpfab(t, side, append([]string{"info", "--advise"}, args...))
	advice.wants(0)
	if text := advice.out.String(); testnet.Borrowed(t) != nil && !strings.Contains(text, granted.XDP+" XDP, "+granted.Copy+" (") {
		t.Errorf("advice by the probe: %s", text)
	}
}

// A daemon without requests takes next to no CPU time.
func TestIdle(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=64KiB")
	for _, phase := range []string{"never asked", "with an idle session behind it"} {
		const seconds, hertz = 2, 100 // USER_HZ is 100 on every supported Linux
		before, start := ticks(t, d), time.Now()
		time.Sleep(seconds * time.Second)
		used := ticks(t, d) - before
		share := float64(used) / (time.Since(start).Seconds() * hertz)
		t.Logf("%s: %.1f %% of a core, %s", phase, 100*share, memory(t, d))
		if most := 0.05 * float64(testnet.Slow); share > most {
			t.Errorf("%s: %d ticks of CPU, %.1f %% of a core, want less than %.0f %%", phase, used, 100*share, 100*most)
		}
		xdpfab(t, net.A, []string{"ping", d.addr(), "-i", net.A.IfName, "-c", "1000"}).wants(0)
	}
}

// ticks is the CPU time of a process so far, of its user and system parts.
func ticks(t *testing.T, d *node) (sum int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name, in parentheses, may have spaces; behind it are fields 3 and up.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	for _, f := range fields[14-3 : 16-3] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// memory returns how much resident memory a process has.
func memory(t *testing.T, d *node) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "VmRSS:") {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	t.Fatal("no VmRSS")
	return ""
}
