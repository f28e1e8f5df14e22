// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/xdpfab/xdpfab/internal/host"
)

var update = flag.Bool("update", false, "write the glossary of docs/metrics.md anew")

// everything returns one of each metric that a daemon can have.
func everything(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	s := sample
	s.Counters = map[string]uint64{}
	for name := range helps {
		s.Counters[name] = 1
	}
	for _, f := range families {
		s.Counters[f.prefix+"x"] = 1
	}
	d := Detail{Queues: make([]host.QueueInfo, 1), Nodes: make([]host.NodeInfo, 1), Sessions: make([]host.SessionKind, 1), States: map[string]bool{}}
	for name := range descStates {
		d.States[name] = true
	}
	list, err := registry(func() (Status, error) { return s, nil }, func() Detail { return d }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range list {
		if strings.HasPrefix(f.GetName(), "xdpfab_") {
			all[f.GetName()] = f
		}
	}
	return all
}

// labelNames are those of a metric.
func labelNames(f *dto.MetricFamily) (names []string) {
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	return names
}

// shortNames returns, by the names of metrics, those of the counters of Status behind
// them: that is how xdpfab stat shows them. A label's value is a word in capitals.
func shortNames() map[string]string {
	short := map[string]string{}
	for name := range helps {
		short["xdpfab_"+identifier(name)+"_total"] = "`" + name + "`"
	}
	for _, f := range families {
		short["xdpfab_"+f.name] = "`" + f.prefix + strings.ToUpper(f.label) + "`"
	}
	return short
}

// The glossary is what the daemon says of its own metrics.
func TestGlossary(t *testing.T) {
	const path, begin, end = "../../docs/metrics.md", "| metric | kind | in `xdpfab stat` | labels | |\n|---|---|---|---|---|\n", "\n## "
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, more := strings.Cut(rest, end)
	if !found || !more {
		t.Fatalf("%s: no table that begins with %q, and a section behind it", path, begin)
	}
	all, short := everything(t), shortNames()
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), short[name], strings.Join(labelNames(f), ", "), f.GetHelp())
	}
	want := before + begin + table.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s differs from the code: go test ./internal/control -run Glossary -update", path)
	}
}

// expressions returns those of the alert rules and of the dashboard, by where they are.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range regexp.MustCompile(`(?m)^ +expr: (.+)$`).FindAllStringSubmatch(string(rules), -1) {
		all[fmt.Sprint("rule ", i)] = m[1]
	}
	text, err := os.ReadFile("../../deploy/grafana/xdpfab.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Query string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for i, x := range p.Targets {
			all[fmt.Sprint("panel ", p.Title, " ", i)] = strings.NewReplacer("$__rate_interval", "1m", "$instance", "x").Replace(x.Expr)
		}
	}
	if len(board.Panels) < 10 || strings.Count(string(rules), "alert:") < 8 {
		t.Errorf("%d panels and %d alerts were read: are these all?", len(board.Panels), strings.Count(string(rules), "alert:"))
	}
	return all
}

var (
	metricName = regexp.MustCompile(`xdpfab_[a-z_]+(\{[^}]*\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*[=!]~?\s*"`)
)

// partsOf has the series that a metric of several has.
var partsOf = map[dto.MetricType][]string{
	dto.MetricType_HISTOGRAM: {"bucket", "count", "sum"},
	dto.MetricType_SUMMARY:   {"count", "sum"},
}

// Rules and panels ask for metrics and labels that exist.
func TestExpressionsNameMetrics(t *testing.T) {
	all := everything(t)
	for where, expr := range expressions(t) {
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 && !strings.Contains(expr, "up{") {
			t.Errorf("%s: no metric in %s", where, expr)
		}
		for _, x := range names {
			name, labels, _ := strings.Cut(x, "{")
			f := all[name]
			if i := strings.LastIndexByte(name, '_'); f == nil && slices.Contains(partsOf[all[name[:i]].GetType()], name[i+1:]) {
				f = all[name[:i]]
			}
			if f == nil {
				t.Errorf("%s: no metric %s", where, name)
				continue
			}
			for _, m := range matcher.FindAllStringSubmatch(labels, -1) {
				if !slices.Contains(append(labelNames(f), "instance", "job"), m[1]) {
					t.Errorf("%s: %s has no label %s", where, name, m[1])
				}
			}
		}
	}
}

// promtool parses the rules and all expressions, and takes the exposition. It runs where
// it is installed, and make metrics-check installs it.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("XDPFAB_PROMTOOL") != "" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed: make metrics-check does that (Debian: prometheus)")
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: all\n  rules:\n")
	exprs := expressions(t)
	for i, where := range slices.Sorted(maps.Keys(exprs)) {
		fmt.Fprintf(&rules, "  - record: x:%d\n    expr: %q\n", i, exprs[where])
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, []byte(rules.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", path}, {"check", "rules", "../../deploy/prometheus/alerts.yml"},
		{"test", "rules", "../../deploy/prometheus/alerts_test.yml"}} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	text, err := metricsText(steady, func() Detail { return Detail{} })
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(tool, "check", "metrics")
	c.Stdin = strings.NewReader(text)
	out, _ := c.CombinedOutput() // its exit code is also about the metrics of Go
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "xdpfab_") || strings.Contains(line, "error") {
			t.Errorf("promtool check metrics: %s", line)
		}
	}
}
