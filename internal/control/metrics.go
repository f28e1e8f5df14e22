// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// scraped answers with the metrics of the status, of what is beside it, of the Go runtime
// and of the process; or with 503 if a poller does not answer. Clients share an answer
// for some time.
func scraped(source Source, detail func() Detail, every time.Duration) http.HandlerFunc {
	all := &shared[string]{every: every, ask: func() (string, error) { return metricsText(source, detail) }}
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := all.get(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, text)
	}
}

func registry(source Source, detail func() Detail) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{source, detail}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// metricsText is the same as text.
func metricsText(source Source, detail func() Detail) (string, error) {
	families, err := registry(source, detail).Gather()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	e := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// collector turns a fresh status into metrics at each scrape. It keeps nothing,
// so there is no second set of counters that could differ.
type collector struct {
	source Source
	detail func() Detail // or nil
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("xdpfab_"+name, help, labels, nil)
}

var (
	descInfo = desc("info", "The daemon, its interface and the mode of its use. The value is always 1.",
		"version", "interface", "address", "driver", "xdp", "copy", "progress")
	descUptime  = desc("uptime_seconds", "Time since the daemon began to serve.")
	descQueues  = desc("queues", "Queues of the interface in use.")
	descMTU     = desc("mtu_bytes", "Largest packet that the interface carries.")
	descRegions = desc("regions", "Memory regions served.")
	descGuests  = desc("guests", "Programs that are attached.")
)

// Describe sends nothing: the source decides which counters exist, and a
// collector without descriptions is checked at each scrape instead.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s, err := c.source()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(descInfo, err)
		return
	}
	send := sink(ch)
	i := s.Interface
	send.gauge(descInfo, 1, s.Version, i.Name, s.Address, i.Driver, i.XDP, i.Copy, s.Progress)
	send.gauge(descUptime, s.UptimeSeconds)
	send.gauge(descQueues, float64(i.Queues))
	send.gauge(descMTU, float64(i.MTU))
	send.gauge(descRegions, float64(len(s.Regions)))
	send.gauge(descGuests, float64(len(s.Guests)))
	send.regions(s.Regions)
	send.guests(s.Guests)
	for name, v := range s.Counters {
		d, labels := counter(name)
		send.counter(d, v, labels...)
	}
	if c.detail != nil {
		d := c.detail()
		send.states(d.States)
		send.queues(d.Queues)
		send.nodes(d.Nodes, d.Sessions)
	}
}

// sink takes metrics. Each method sends those of one thing.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, valid(labels...)...)
}

func (s sink) counter(d *prometheus.Desc, v uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), valid(labels...)...)
}

// valid makes label values UTF-8, as Prometheus requires; names of regions and
// files need not be.
func valid(labels ...string) []string {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	return labels
}

// families are counters with a common prefix: they become one metric, and the
// rest of the name becomes its label.
var families = []struct{ prefix, name, label, help string }{
	{"refused_", "packets_refused_total", "reason", "Packets that the codec rejected as malformed."},
	{"request_", "requests_not_run_total", "verdict",
		"Request frames that were dropped, or answered without running them."},
	{"op_refused_", "ops_refused_total", "cause", "Operations of peers that pollers refused, by cause."},
	{"hello_refused_", "sessions_refused_total", "cause", "Refused requests of peers for a session, by cause."},
	{"guest_refused_", "guests_refused_total", "cause", "Programs that were refused, by cause."},
	{"xdp_", "xdp_packets_total", "decision", "Packets that the XDP program saw, by its decision."},
}

// helps describe the other counters. One that is missing here is still reported.
var helps = map[string]string{
	"packets_received":  "Packets taken from the sockets.",
	"packets_sent":      "Packets sent by the sockets, and those to this node itself, which bypass them.",
	"ops_sent":          "Operation records sent for the first time.",
	"frames_resent":     "Request frames sent again.",
	"requests_executed": "Request frames of peers executed.",
	"ops_executed":      "Operation records of peers executed.",
	"lookups_not_found": "Lookups by peers of regions that do not exist, and pings; no refusals.",
	"resident_ops_executed": "Operation records that the XDP program executed, also those of " +
		"frames that user space passed to it.",
	"resident_requests_executed": "Request frames that the XDP program executed as they arrived.",
	"resident_duplicates":        "Repeated request frames that the XDP program answered again without executing them.",
	"resident_early": "Frames of resident sessions that arrived before their turn, or for a " +
		"capture, and went to user space or got a nak.",
	"resident_passed":  "Frames of resident sessions that the XDP program left to user space.",
	"resident_relayed": "Frames that user space answered because the XDP program's answer may be lost.",
	"resident_answers_lost": "Answers of the XDP program that did not arrive in time, so that their " +
		"requests were sent again.",
	"resident_sessions_relayed":  "Sessions that user space began to answer because the program's answers were lost.",
	"resident_refused":           "Frames of resident sessions that were stale or contradicted their session.",
	"resident_busy":              "Frames dropped because another CPU was working on their resident session.",
	"resident_sessions":          "Sessions of peers that the XDP program has taken over.",
	"resident_sessions_returned": "Resident sessions whose place was given to another peer.",
	"hellos":                     "Requests of peers to open a session.",
	"hellos_unauthorized":        "Hellos without the authorization key of their endpoint.",
	"sessions_opened":            "Sessions opened by this node.",
	"sessions_accepted":          "Sessions opened by peers.",
	"sessions_retired":           "Sessions of peers that were discarded after a long silence.",
	"sessions_evicted":           "Sessions of peers that were discarded to make room when the table was full.",
	"messages_stalled":           "Messages of peers that were dropped because their sender stopped in the middle.",
	"peers_restarted":            "Peers that had restarted when they answered.",
	"sessions_failed":            "Sessions opened by this node that ended by silence, restart or refusal.",
	"unknown_session":            "Frames of sessions that do not exist here.",
	"stale_epoch":                "Frames of an earlier session with the same id.",
	"invalid":                    "Well-formed frames that contradict their session.",
	"paths_narrow":               "Sessions that use short frames because frames as long as the MTU do not pass.",
	"gathered":                   "Received packets that were joined from several chunks.",
	"forwarded":                  "Frames that arrived on queues that are not in use, and were passed on.",
	"handed_over":                "Frames that arrived on a queue other than their session's.",
	"port_errors":                "Failures of the sockets.",
	"tx_lost":                    "Packets that the kernel took and lost.",
	"tx_retries":                 "Times that the kernel had to be asked again to send packets.",
	"bad_completions":            "Completions of buffers that were not being sent.",
	"rescued_buffers":            "Buffers that were recovered because their completions never arrived.",
	"repeated_buffers":           "Packets that were dropped because the kernel handed over their buffer twice.",
	"xsk_rx_dropped":             "Received packets that a socket dropped.",
	"xsk_rx_invalid_descs":       "Invalid descriptors that the kernel found in fill rings.",
	"xsk_tx_invalid_descs":       "Invalid descriptors that the kernel found in TX rings.",
	"xsk_rx_ring_full":           "Received packets dropped because an RX ring was full.",
	"xsk_fill_ring_empty":        "Times that the kernel found a fill ring empty.",
	"xsk_tx_ring_empty": "Times that the kernel found a TX ring empty: harmless, as it is when nothing is to be " +
		"sent.",
	"queues_lent":    "Times that a queue was lent to a program.",
	"guests_evicted": "Guests that were evicted because they broke a rule of the shared rings.",
	"udp_rx_dropped": "Datagrams received that no peer can have sent.",
	"udp_rx_errors":  "Errors of receiving from UDP sockets.",
	"udp_tx_joined":  "Packets handed to the kernel in joined messages, which it splits (UDP_SEGMENT).",
	"udp_tx_uncut":   "Joined messages that the kernel did not split: packets were sent one by one.",
}

// counter is the metric of a counter of Status.
func counter(name string) (*prometheus.Desc, []string) {
	for _, f := range families {
		if rest, ok := strings.CutPrefix(name, f.prefix); ok {
			return desc(f.name, f.help, f.label), []string{rest}
		}
	}
	help := helps[name]
	if help == "" {
		help = "Counter " + strconv.Quote(name) + " of the domain."
	}
	return desc(identifier(name)+"_total", help), nil
}

// identifier replaces the characters that a metric's name cannot have.
func identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToLower(s))
}
