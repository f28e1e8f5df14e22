// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/xdpfab/xdpfab/internal/wire"

// proofs are the sessions that find out whether long frames pass, each with the long
// probes after which a short one came back. An initiator may conclude that long frames do
// not pass only by such an echo, and after some of them: otherwise it is the target, or
// the whole path, that is silent, or it is chance.
type proofs map[proofID]*misses

type misses struct {
	last   bool // the latest long probe is one of them
	n      int
	passed bool // a long echo came, and nobody was told yet
}

// leastMisses are too many for chance.
const leastMisses = 4

// proofID is a session, by what its frames say.
type proofID struct {
	from, to int // initiator and target
	epoch    uint32
}

// asked records a probe that leaves the initiator. Some first ones find that the path has
// just fallen silent.
func (p proofs) asked(from, to *node, h *wire.Header, payload []byte) {
	if len(payload) == 0 {
		return
	}
	id := proofID{from.index, to.index, h.Epoch}
	if p[id] == nil {
		p[id] = new(misses)
		switch h.Epoch % silences {
		case 0:
			from.w.fallSilent(from, to, h.Epoch/silences)
		case 1:
			from.w.fallNarrow(from, to, h.Epoch/silences)
		}
	}
	p[id].last = false
}

// silences is how many sessions there are to one whose proof meets a silent path, and to
// one whose proof meets a path that drops long packets.
const silences = 8

// longestSure is the longest packet that passes everywhere, with a VLAN tag.
const longestSure = 14 + 4 + wire.SureMTU

// fallNarrow has the link between two nodes, in one direction or the other, drop long
// packets for some time. It draws nothing, so that seeds mean what they meant.
func (w *world) fallNarrow(from, to *node, draw uint32) {
	if w.calm || w.plan.story == nil && w.plan.incidents.partitions == 0 {
		return
	}
	spans := [...]int64{10 * millisecond, 200 * millisecond, second, 3 * second, 40 * second}
	until := w.now + spans[draw/2%uint32(len(spans))]
	w.trace.event("long packets from %d to %d, or back, are lost until %d", from.index, to.index, until)
	w.excuse(from.index, to.index, until)
	if draw%2 == 1 {
		from, to = to, from
	}
	l := &w.net.links[from.index][to.index]
	l.narrow = max(l.narrow, until)
}

// fallSilent cuts the link between two nodes for up to one and a half give-up times. It
// draws nothing, so that seeds mean what they meant.
func (w *world) fallSilent(from, to *node, draw uint32) {
	if w.calm || w.plan.story == nil && w.plan.incidents.partitions == 0 {
		return
	}
	until := w.now + int64(w.plan.session.GiveUp)/4*int64(1+draw%6)
	w.count(partitions)
	w.trace.event("silence from %d to %d until %d", from.index, to.index, until)
	l := &w.net.links[from.index][to.index]
	l.cut++
	w.excuse(from.index, to.index, until)
	w.at(until, func() { l.cut-- })
}

// arrived records a packet that the network gives to an initiator, if it is an echo.
func (p proofs) arrived(at *node, packet []byte) {
	frame, source, reason := wire.Decap(packet)
	if reason != wire.ReasonOK {
		return
	}
	h, payload, reason := wire.Parse(frame)
	from := at.w.net.byMAC[source.Remote]
	if source.RemoteIP.IsValid() {
		from = at.w.net.byIP[source.RemoteIP]
	}
	if reason != wire.ReasonOK || h.Type != wire.Ack || h.Flags&wire.FlagEcho == 0 || from == nil {
		return
	}
	id := proofID{at.index, from.index, h.Epoch}
	switch m := p[id]; {
	case m == nil:
	case len(payload) > 0:
		*m = misses{passed: true}
	case !m.last:
		m.last = true
		m.n++
	}
}

// narrowed checks that an initiator could conclude that long frames do not pass.
func (n *node) narrowed(l wire.Link, _ int) {
	to := n.w.net.byMAC[l.Remote]
	if l.RemoteIP.IsValid() {
		to = n.w.net.byIP[l.RemoteIP]
	}
	n.w.count(narrowPaths)
	for id, m := range n.w.tap.proofs {
		if m.last && m.n >= leastMisses && id.from == n.index && id.to == to.index {
			*m = misses{}
			return
		}
	}
	n.w.fail("%v takes the path to %v for one on which long frames do not pass, but hardly anything came back at all",
		n, to)
}

// widened checks that a long echo has come.
func (n *node) widened(l wire.Link) {
	to := n.w.net.byMAC[l.Remote]
	if l.RemoteIP.IsValid() {
		to = n.w.net.byIP[l.RemoteIP]
	}
	n.w.count(widePaths)
	for id, m := range n.w.tap.proofs {
		if m.passed && id.from == n.index && id.to == to.index {
			m.passed = false
			return
		}
	}
	n.w.fail("%v takes the path to %v for one on which long frames pass by now, but none has come", n, to)
}
