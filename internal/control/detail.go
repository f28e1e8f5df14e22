// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xdpfab/xdpfab/internal/host"
)

// Detail is what metrics show beside the status.
type Detail struct {
	Queues   []host.QueueInfo
	Nodes    []host.NodeInfo // those that carried most first
	Sessions []host.SessionKind
	States   map[string]bool // of descStates; one that does not apply is missing
}

// descStates are what a daemon does at present, 1, or does not, 0.
var descStates = map[string]*prometheus.Desc{
	"ready": desc("ready", "1 while peers are served, 0 while /readyz says why they are not."),
	"link_up": desc("link_up", "1 while the interface is up and has a carrier, otherwise 0. With UDP sockets also 0 "+
		"if none of the served addresses is left."),
	"directory_announced": desc("directory_announced", "1 while this node is in the directory, otherwise 0. Missing "+
		"without --directory."),
	"resident_kept": desc("resident_kept", "1 if there is a folder that keeps the resident regions when the daemon "+
		"ends, otherwise 0. Missing without resident regions, and with --pin none."),
}

func (s sink) states(is map[string]bool) {
	for name, on := range is {
		value := 0.0
		if on {
			value = 1
		}
		s.gauge(descStates[name], value)
	}
}

// MostLabels is how many nodes, guests and regions have metrics of their own: those that
// carried most, or, of regions, the first. The others are counted in xdpfab_unlisted, and
// have their part in the sums without such labels.
const MostLabels = 100

var (
	descUnlisted = desc("unlisted",
		"Nodes, guests and regions without metrics of their own, beyond "+strconv.Itoa(MostLabels)+".", "kind")

	descRegionSize = desc("region_size_bytes", "Size of a memory region.", "region", "access", "backing", "pages")

	descRegionOps = desc("region_ops_total",
		"Operations applied to a region, unless it is resident. Fetching ones returned what they found, as reads and "+
			"swaps do.",
		"region", "kind")
	descRegionBytes = desc("region_touched_bytes_total", "Bytes that such operations reached.", "region", "kind")

	descGuestEndpoints = desc("guest_endpoints", "Endpoints of a guest.", "pid", "user")
	descGuestPeers     = desc("guest_peers", "Peers of a guest's endpoints.", "pid", "user")
	descGuestRegions   = desc("guest_regions", "Regions that a guest serves.", "pid", "user")
	descGuestMemory    = desc("guest_region_bytes",
		"Memory of the regions of a guest.", "pid", "user")
	descGuestOps = desc("guest_region_ops_total",
		"Operations that pollers applied to the regions of a guest, fetching or not.",
		"pid", "user", "kind")
	descGuestBytes = desc("guest_region_touched_bytes_total", "Bytes that such operations reached.",
		"pid", "user", "kind")
	descGuestTime = desc("guest_op_seconds",
		"Time from an operation's entry in a guest's ring to its completion, measured for one operation "+
			"at a time.",
		"pid", "user")
	descGuestTaken = desc("guest_entries_total", "Entries taken from a guest's submission ring.", "pid",
		"user")
	descGuestRefused = desc("guest_entries_refused_total",
		"Entries of a guest's rings that were not operations.", "pid", "user")
	descGuestDone = desc("guest_completions_total", "Completions given to a guest.", "pid", "user")

	descQueueSessions = desc("queue_sessions", "Sessions of a queue's poller, of both roles.", "queue")
	descQueueReceived = desc("queue_packets_received_total",
		"Packets that a queue's poller took from its socket.", "queue")
	descQueueSent = desc("queue_packets_sent_total",
		"Packets that a queue's poller sent by its socket, and those to this node itself, which bypass it.",
		"queue")
	descQueueRequests = desc("queue_requests_executed_total", "Request frames that a queue's poller executed.", "queue")
	descQueueExecuted = desc("queue_ops_executed_total", "Operation records that a queue's poller executed.", "queue")
	descQueueOps      = desc("queue_ops_sent_total", "Operation records that a queue's poller sent for the first time.",
		"queue")
	descQueueResent = desc("queue_frames_resent_total", "Request frames that a queue's poller sent again.", "queue")
	descQueueOver   = desc("queue_handed_over_total",
		"Frames for a queue's poller that came on another queue.", "queue")

	descExecution = desc("frame_execution_seconds",
		"Time that a poller took to execute a request frame of a peer, measured for one frame in 64.")
	descRoundTrip = desc("round_trip_seconds",
		"Time from a request frame of this node to its answer, for frames that were sent once.")

	descRingOps = desc("ring_op_seconds",
		"Time from an operation's entry in a program's ring to its completion, for all programs, measured for one "+
			"operation of each at a time.")

	descSessions = desc("sessions",
		"Current sessions with other nodes, by the role of this node and by state.", "role", "state")
	descNodes   = desc("nodes", "Other nodes with which there are sessions.")
	descNodeIs  = desc("node_sessions", "Sessions with another node.", "node")
	descNodeOps = desc("node_ops_total",
		"Operation records exchanged with a node: sent to it by an initiator, or executed for it.", "node", "role")
	descNodeResent = desc("node_frames_resent_total", "Requests and answers sent to a node again.", "node")
	descNodeSent   = desc("node_sent_bytes_total", "Bytes of packets sent to a node.", "node")
	descNodeGot    = desc("node_received_bytes_total", "Bytes of packets received from a node.", "node")
	descNodeFlight = desc("node_in_flight",
		"Request frames of a node's sessions without an answer, or answers not acknowledged.", "node")
	descNodeRTT = desc("node_round_trip_seconds",
		"Smoothed round-trip time to a node, of the slowest session that measures it.", "node")
	descNodeSilence = desc("node_silence_seconds", "Time since a node was last heard from.", "node")
)

// most cuts a list to those that get labels, and sends how many do not.
func most[T any](s sink, kind string, list []T) []T {
	s.gauge(descUnlisted, float64(max(len(list)-MostLabels, 0)), kind)
	return list[:min(len(list), MostLabels)]
}

func (s sink) regions(list []Region) {
	for n, r := range most(s, "region", list) {
		name := r.Name
		if name == "" { // unnamed regions are labelled by their place, since a key should not be shown
			name = "#" + strconv.Itoa(n)
		}
		s.gauge(descRegionSize, float64(r.Size), name, strings.Join(r.Access, ","), r.Backing, r.Pages)
		if r.Backing != "resident" { // else the XDP program applies nearly all, and counts no regions
			s.applied(descRegionOps, descRegionBytes, &r.Applied, name)
		}
	}
}

// applied sends the counters of what was applied to memory, with the labels of the
// memory.
func (s sink) applied(ops, bytes *prometheus.Desc, a *Applied, labels ...string) {
	labels = slices.Clip(labels)
	s.counter(ops, a.Fetching, append(labels, "fetching")...)
	s.counter(ops, a.NonFetching, append(labels, "non_fetching")...)
	s.counter(bytes, a.FetchingBytes, append(labels, "fetching")...)
	s.counter(bytes, a.NonFetchingBytes, append(labels, "non_fetching")...)
}

// guests sends programs, those that were given most completions first. Several domains of
// one program are one.
func (s sink) guests(list []Guest) {
	type program struct {
		pid int
		uid uint32
	}
	of := map[program]*Guest{}
	var all []*Guest
	for _, g := range list {
		at := of[program{g.PID, g.UID}]
		if at == nil {
			first := g
			of[program{g.PID, g.UID}] = &first
			all = append(all, &first)
			continue
		}
		at.Endpoints, at.Peers, at.Regions = at.Endpoints+g.Endpoints, at.Peers+g.Peers, at.Regions+g.Regions
		at.Memory, at.Taken = at.Memory+g.Memory, at.Taken+g.Taken
		at.Refused, at.Completed = at.Refused+g.Refused, at.Completed+g.Completed
		at.Timed, at.Took = at.Timed+g.Timed, at.Took+g.Took
		at.Applied.Add(g.Applied)
	}
	slices.SortStableFunc(all, func(a, b *Guest) int { return cmp.Compare(b.Completed, a.Completed) })
	for _, g := range most(s, "guest", all) {
		pid, user := strconv.Itoa(g.PID), cmp.Or(g.User, strconv.FormatUint(uint64(g.UID), 10))
		s.gauge(descGuestEndpoints, float64(g.Endpoints), pid, user)
		s.gauge(descGuestPeers, float64(g.Peers), pid, user)
		s.gauge(descGuestRegions, float64(g.Regions), pid, user)
		s.gauge(descGuestMemory, float64(g.Memory), pid, user)
		s.applied(descGuestOps, descGuestBytes, &g.Applied, pid, user)
		s <- prometheus.MustNewConstSummary(descGuestTime, g.Timed, float64(g.Took)/1e9, nil, valid(pid, user)...)
		s.counter(descGuestTaken, g.Taken, pid, user)
		s.counter(descGuestRefused, g.Refused, pid, user)
		s.counter(descGuestDone, g.Completed, pid, user)
	}
}

// latencies sends a histogram. All queues have one, as each takes a series for each of
// its buckets.
func (s sink) latencies(d *prometheus.Desc, l *host.Latencies) {
	below, all := host.LatencyBuckets(l)
	s <- prometheus.MustNewConstHistogram(d, all, float64(l.Sum)/1e9, below)
}

func (s sink) queues(list []host.QueueInfo) {
	var executions, roundTrips, ringOps host.Latencies
	for _, x := range list {
		q := strconv.Itoa(x.Queue)
		s.gauge(descQueueSessions, float64(x.Sessions), q)
		s.counter(descQueueReceived, x.PacketsReceived, q)
		s.counter(descQueueSent, x.PacketsSent, q)
		s.counter(descQueueRequests, x.RequestsExecuted, q)
		s.counter(descQueueExecuted, x.OpsExecuted, q)
		s.counter(descQueueOps, x.OpsSent, q)
		s.counter(descQueueResent, x.FramesResent, q)
		s.counter(descQueueOver, x.HandedOver, q)
		executions.Merge(&x.Executions)
		roundTrips.Merge(&x.RoundTrips)
		ringOps.Merge(&x.RingOps)
	}
	s.latencies(descExecution, &executions)
	s.latencies(descRoundTrip, &roundTrips)
	s.latencies(descRingOps, &ringOps)
}

func (s sink) nodes(list []host.NodeInfo, kinds []host.SessionKind) {
	open := map[string]bool{"initiator": false, "target": false} // both roles are there, also without sessions
	for _, k := range kinds {
		s.gauge(descSessions, float64(k.Count), k.Role, k.State)
		open[k.Role] = open[k.Role] || k.State == "open"
	}
	for role, has := range open {
		if !has {
			s.gauge(descSessions, 0, role, "open")
		}
	}
	s.gauge(descNodes, float64(len(list)))
	for _, n := range most(s, "node", list) {
		s.gauge(descNodeIs, float64(n.Sessions), n.Node)
		s.counter(descNodeOps, n.OpsSent, n.Node, "initiator")
		s.counter(descNodeOps, n.OpsExecuted, n.Node, "target")
		s.counter(descNodeResent, n.FramesResent, n.Node)
		s.counter(descNodeSent, n.BytesSent, n.Node)
		s.counter(descNodeGot, n.BytesReceived, n.Node)
		s.gauge(descNodeFlight, float64(n.InFlight), n.Node)
		s.gauge(descNodeRTT, n.RTT.Seconds(), n.Node)
		s.gauge(descNodeSilence, n.Silence.Seconds(), n.Node)
	}
}
