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

	requestBytes, resentBytes int64 // packets that carry requests
}

// frameID is one request frame, however often it is sent.
type frameID struct {
	from, to            int
	session, epoch, psn uint32
}

// wordID is one word of memory.
type wordID struct{ node, region, word int }

// sent checks a packet: every frame is well-formed, a frame sent again is the
// same as before, and none carries a fenced operation too early.
func (t *wiretap) sent(n *node, packet []byte) {
	frame, _, reason := wire.Decap(packet)
	to := t.w.net.receiver(n, packet)
	if reason != wire.ReasonOK || to == nil {
		return // answers to damaged addresses go nowhere
	}
	h, payload, reason := wire.Parse(frame)
	if reason != wire.ReasonOK {
		t.w.fail("%v sends a frame that is refused: %v", n, reason)
		return
	}
	switch h.Type {
	case wire.Hello, wire.HelloAck:
		t.features(n, h.Type, payload)
	case wire.Request:
		t.request(n, to, &h, payload, len(packet))
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
	want := hello.Features & n.features() &^ wire.FeatureMessages // which the endpoints do not receive
	if !takesEvents(hello.Endpoint) {
		want &^= wire.FeatureNotices
	}
	if m.Status == wire.HelloAccepted && m.Features != want {
		t.w.fail("%v accepts a session with features %#x, want %#x", n, m.Features, want)
	} else if m.Status == wire.HelloAccepted && want&wire.FeatureUnordered != 0 {
		t.w.count(anyOrders)
	}
}

// request checks a request frame, in a packet of size bytes.
func (t *wiretap) request(n, to *node, h *wire.Header, payload []byte, size int) {
	t.requestBytes += int64(size)
	id := frameID{n.index, to.index, h.Session, h.Epoch, h.PSN}
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
		t.fence(to, payload, int(h.Ops))
	}
}

// fence looks for fenced operations in a request.
func (t *wiretap) fence(to *node, payload []byte, ops int) {
	if len(t.fences) == 0 {
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
func (w *world) checkFence(o *op) {
	for _, before := range o.peer.ops[:o.seq] {
		if !before.done && before.peer.eng.Life() == o.peer.eng.Life() {
			w.fail("%v did not wait for %v", o, before)
			return
		}
	}
}
