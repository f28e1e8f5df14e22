// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// scrape returns the metrics of a source, parsed, after promlint has checked
// them.
func scrape(t *testing.T, source Source) map[string]*dto.MetricFamily {
	t.Helper()
	var text string
	if err := dial(t, start(t, source)).Call(ask(t), "metrics", nil, &text); err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "xdpfab_") {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// labels is {a="b",…} of a metric.
func labels(m *dto.Metric) string {
	var all []string
	for _, l := range m.GetLabel() {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(all, ",")
}

func TestMetrics(t *testing.T) {
	families := scrape(t, func() (Status, error) { return sample, nil })
	for _, want := range []struct {
		name, labels string
		kind         dto.MetricType
		value        float64
	}{
		{"xdpfab_info", "address=02:00:00:00:00:0a,copy=copy,driver=veth,interface=eth7,progress=auto,version=1.2.3,xdp=native", dto.MetricType_GAUGE, 1},
		{"xdpfab_uptime_seconds", "", dto.MetricType_GAUGE, 1.5},
		{"xdpfab_queues", "", dto.MetricType_GAUGE, 2},
		{"xdpfab_mtu_bytes", "", dto.MetricType_GAUGE, 1500},
		{"xdpfab_regions", "", dto.MetricType_GAUGE, 2},
		{"xdpfab_region_size_bytes", "access=read,write,backing=anonymous,pages=huge,region=counters", dto.MetricType_GAUGE, 65536},
		{"xdpfab_region_size_bytes", "access=read,backing=file:/x,pages=small,region=sco\uFFFDres", dto.MetricType_GAUGE, 4096},
		{"xdpfab_guest_region_ops_total", "kind=non_fetching,pid=815,user=alice", dto.MetricType_COUNTER, 7},
		{"xdpfab_guest_region_touched_bytes_total", "kind=fetching,pid=815,user=alice", dto.MetricType_COUNTER, 48},
		{"xdpfab_guest_op_seconds", "pid=815,user=alice", dto.MetricType_SUMMARY, 3},
		{"xdpfab_packets_received_total", "", dto.MetricType_COUNTER, 12},
		{"xdpfab_packets_refused_total", "reason=bad_crc", dto.MetricType_COUNTER, 3},
		{"xdpfab_requests_not_run_total", "verdict=out_of_window", dto.MetricType_COUNTER, 4},
		{"xdpfab_xdp_packets_total", "decision=redirect", dto.MetricType_COUNTER, 5},
		{"xdpfab_some_thing_new_total", "", dto.MetricType_COUNTER, 6},
		{"xdpfab_xsk_rx_dropped_total", "", dto.MetricType_COUNTER, 1 << 40},
	} {
		f := families[want.name]
		if f == nil || f.GetHelp() == "" || f.GetType() != want.kind {
			t.Errorf("%s: %v; want a %v with help", want.name, f, want.kind)
			continue
		}
		found := false
		for _, m := range f.GetMetric() {
			if labels(m) == want.labels {
				found = m.GetGauge().GetValue()+m.GetCounter().GetValue()+m.GetSummary().GetSampleSum() == want.value
			}
		}
		if !found {
			t.Errorf("%s{%s}: not %v in %v", want.name, want.labels, want.value, f)
		}
	}
	if families["go_goroutines"] == nil || families["process_open_fds"] == nil {
		t.Error("no metrics of runtime or process")
	}
}

// A resident region has a size and no counts, since nothing counts all that is applied to
// it.
func TestMetricsOfResidentRegion(t *testing.T) {
	families := scrape(t, func() (Status, error) {
		return Status{Regions: []Region{{Name: "hot", Size: 8, Backing: "resident"}, {Name: "r", Backing: "memfd"}}}, nil
	})
	if n := len(families["xdpfab_region_size_bytes"].GetMetric()); n != 2 {
		t.Errorf("%d sizes, want 2", n)
	}
	for _, m := range families["xdpfab_region_ops_total"].GetMetric() {
		if !strings.Contains(labels(m), "region=r") {
			t.Errorf("%s is counted", labels(m))
		}
	}
}

// Every counter of a domain has a description.
func TestEveryCounterHasHelp(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	counters, err := a.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if len(counters) == 0 {
		t.Fatal("no counters")
	}
	scrape(t, func() (Status, error) { return Status{Counters: counters}, nil })
	for name := range counters {
		if d, _ := counter(name); strings.Contains(d.String(), "of the domain.") {
			t.Errorf("counter %q has no help of its own", name)
		}
	}
}
