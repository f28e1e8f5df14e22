// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"hash/fnv"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// wiretap sees every packet that an engine sends, before the network does
// anything to it.
type wiretap struct {
	w        *world
	requests map[frameID]uint64       // hash of the payload as first sent
	fences   map[wordID]*op           // each fenced operation has a word of its own
	asked    map[uint64]wire.HelloMsg // by nonce
	parts    map[frameID]progress     // of the message that a session is in the middle of
	proofs   proofs

	requestBytes, resentBytes int64 // packets that carry requests
}

// frameID is one request frame, however often it is sent, and to whichever address of
// its target.
type frameID struct {
	from                int
	session, epoch, psn uint32
}

// progress is how many bytes of a message have been sent, and how many have not.
type progress struct{ has, lacks uint64 }

// wordID is one word of memory.
type wordID struct{ node, region, word int }

// sent checks a packet: every frame is well-formed, a frame sent again is the
// same as before, and none carries a fenced operation too early.
func (t *wiretap) sent(n *node, packet []byte) {
	frame, _, reason := wire.Decap(packet)
	to := t.w.net.receiver(n, packet)
	if reason != wire.ReasonOK {
		return
	}
	h, payload, reason := wire.Parse(frame)
	if reason != wire.ReasonOK {
		t.w.fail("%v sends a frame that is refused: %v", n, reason)
		return
	}
	if h.Flags&wire.FlagBusy != 0 && !n.waits() && !n.refused && n.w.plan.attends == 0 && n.callee == nil {
		t.w.fail("%v says that a message or an event waits, but none does", n)
	}
	if to == nil && h.Type != wire.Request {
		return // to a damaged address, or one that its node has left
	}
	switch h.Type {
	case wire.Hello, wire.HelloAck:
		t.features(n, h.Type, payload)
	case wire.Request:
		t.request(n, to, &h, payload, len(packet))
	case wire.Probe:
		t.proofs.asked(n, to, &h, payload)
	}
}

// features checks that a session has exactly the features that the initiator asks for
// and the target knows.
func (t *wiretap) features(n *node, typ wire.Type, payload []byte) {
	if typ == wire.Hello {
		var m wire.HelloMsg
		m.Parse(payload)
		t.asked[m.Nonce] = m
		return
	}
	var m wire.HelloAckMsg
	m.Parse(payload)
	hello := t.asked[m.Nonce]
	want := hello.Features & n.features()
	if !n.receives(hello.Endpoint) {
		want &^= wire.FeatureMessages | wire.FeatureTaggedAtomics
	}
	if !takesEvents(hello.Endpoint) {
		want &^= wire.FeatureNotices
	}
	if n.callee == nil {
		want &^= wire.FeatureCalls
	} else {
		want &^= wire.FeaturePadding
	}
	if !n.pads() || n.receives(hello.Endpoint) && want&wire.FeatureMessages != 0 {
		want &^= wire.FeaturePadding
	}
	if other := (m.Features ^ want) &^ wire.FeatureOptions; m.Status == wire.HelloAccepted && other != 0 {
		t.w.fail("%v accepts a session with features %#x, want %#x", n, m.Features, want)
	} else if m.Status == wire.HelloAccepted && want&wire.FeatureUnordered != 0 {
		t.w.count(anyOrders)
	}
}

// request checks a request frame, in a packet of size bytes.
func (t *wiretap) request(n, to *node, h *wire.Header, payload []byte, size int) {
	t.requestBytes += int64(size)
	id := frameID{n.index, h.Session, h.Epoch, h.PSN}
	sum := fnv.New64a()
	_, _ = sum.Write(payload)
	was, again := t.requests[id]
	switch {
	case again && was != sum.Sum64():
		t.w.fail("%v sends psn %x of session %x again with another payload", n, h.PSN, h.Session)
	case again:
		t.resentBytes += int64(size)
		t.w.count(resends)
	default:
		t.requests[id] = sum.Sum64()
		if h.Flags&wire.FlagMessages != 0 {
			t.messages(n, id, payload, int(h.Ops))
			return
		}
		t.fence(to, payload, int(h.Ops))
	}
}

// messages checks that the messages of a session follow each other, each in its parts.
func (t *wiretap) messages(n *node, id frameID, payload []byte, ops int) {
	id.psn = 0
	p := t.parts[id]
	var r wire.MessageReader
	var m wire.Message
	for r.Reset(payload, ops); r.Next(&m); {
		size := uint64(len(m.Part))
		switch {
		case m.Begins && p.lacks == 0:
			p = progress{size, m.Length - size}
		case m.Begins || p.lacks == 0 || m.Offset != p.has || size > p.lacks:
			t.w.fail(
				"%v sends %d bytes from %d on of a message of which %d have been sent and %d lack; a beginning: %t", n,
				size, m.Offset, p.has, p.lacks, m.Begins)
		case m.Drop:
			t.w.count(messagesDropped)
			p.lacks = 0
		default:
			p = progress{p.has + size, p.lacks - size}
		}
	}
	if reason := r.Reason(); reason != wire.ReasonOK {
		t.w.fail("%v sends a frame of messages that is refused: %v", n, reason)
	}
	t.parts[id] = p
}

// fence looks for fenced operations in a request.
func (t *wiretap) fence(to *node, payload []byte, ops int) {
	if len(t.fences) == 0 || to == nil {
		return
	}
	var r wire.RecordReader
	var rec wire.Record
	r.Reset(payload, ops)
	for r.Next(&rec) {
		if !rec.Verb.Atomic() || rec.Key != to.regions[fenceRegion].key() {
			continue
		}
		for i := range rec.Ops() {
			rec.Element(i)
			if o := t.fences[wordID{to.index, fenceRegion, int(rec.Offset / 8)}]; o != nil {
				t.w.checkFence(o)
			}
		}
	}
}

// checkFence fails the run unless everything posted before o has completed. Operations
// posted by another name that has yet to learn of the target's restart will not run.
// Those that were posted for another life than o are for another endpoint.
func (w *world) checkFence(o *op) {
	for _, before := range o.peer.ops[:o.seq] {
		same := before.met == 0 || o.met == 0 || before.met == o.met
		if same && !before.done && before.peer.eng.Life() == o.peer.eng.Life() {
			w.fail("%v did not wait for %v", o, before)
			return
		}
	}
}
