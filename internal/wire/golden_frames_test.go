// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"slices"
	"testing"
)

// goldens lists all recorded frames: every type, every form of a record and of a
// response, every encapsulation.
func goldens(t *testing.T) []golden {
	return slices.Concat(goldenHellos(), goldenBare(), goldenRequests(t), goldenNotices(t), goldenTransfers(t), goldenSignals(t), goldenWaits(t), goldenCalls(t), goldenMessages(t), goldenTaggedAtomics(t), goldenResponses(t), goldenPackets(t))
}

func goldenHellos() []golden {
	first := HelloMsg{Nonce: 0x1122334455667788, Session: uint32(NewSessionID(3, 1, 7, 9)), Endpoint: 258, MaxFrame: 1472, Window: 64,
		Keep: 110, Origin: 0x0f1e2d3c4b5a6978, Serial: 5}
	hello := Header{Type: Hello, Session: HelloSession(2), Lane: 3}
	second := first
	second.Cookie = Cookie([]byte("sixteen letters!"))
	second.Resume = Resume{Session: uint32(NewSessionID(2, 5, 999, 8)), Epoch: 0xb1b2b3b4, PSN: 0x01020304}
	newer := first
	newer.Features = 1<<31 | FeatureMessages | FeatureMemory
	classy := first
	classy.Features, classy.Options.Class = FeatureOptions, Class{DSCP: 46, PCP: 5}
	proof := Proof([]byte("thirty-two bytes of a keyed hash"))
	proven := classy
	proven.Options.Proof, proven.Options.Proven = proof, true
	back := Header{Type: HelloAck, Session: first.Session, Lane: 2}
	accepted := back
	accepted.Epoch = 0xa1a2a3a4
	ack := HelloAckMsg{Nonce: first.Nonce, Session: uint32(NewSessionID(2, 5, 1000, 33)), MaxFrame: 1472, Window: 32, Life: 0x7766554433221101}
	resumed := ack
	resumed.Resume, resumed.Lost, resumed.Features = second.Resume, true, FeatureMemory
	provenAck := ack
	provenAck.Features, provenAck.Options = FeatureOptions, Options{Proof: proof, Proven: true}
	reset := head(Reset)
	reset.Ack, reset.Credit = 0, 0
	return []golden{
		carrying("hello", "hello, the first of a session: no cookie yet", hello, first),
		carrying("hello-again", "hello with the target's cookie, which asks for the fate of a former session", hello, second),
		carrying("hello-newer", "hello of a later version: features, and a remainder that is skipped", hello, newer, pattern(HelloRoom)...),
		carrying("hello-class", "hello with the option of a class: codepoint 46, priority 5", hello, classy),
		carrying("hello-proof", "hello with the options of a class and of a proof", hello, proven),
		carrying("hello-ack-challenge", "hello-ack, status 1: say hello again with this cookie", back,
			HelloAckMsg{Nonce: first.Nonce, Status: HelloChallenge, Cookie: second.Cookie, Life: ack.Life}),
		carrying("hello-ack", "hello-ack, status 0: accepted", accepted, ack),
		carrying("hello-ack-proof", "hello-ack, status 0: accepted, with the option of a proof", accepted, provenAck),
		carrying("hello-ack-unauthorized", "hello-ack, status 9: the endpoint has another authorization key", back,
			HelloAckMsg{Nonce: first.Nonce, Status: HelloKeyWrong, Life: ack.Life}),
		carrying("hello-ack-resumed", "hello-ack, status 0: with features; of the former session the answers are lost", accepted, resumed),
		carrying("hello-ack-refused", "hello-ack, status 2: no such endpoint", back, HelloAckMsg{Nonce: first.Nonce, Status: HelloNoEndpoint, Life: ack.Life}),
		carrying("reset-unknown", "reset, reason 1: answers a request of an unknown session, to the lane of its sender",
			Header{Type: Reset, Session: HelloSession(3), Epoch: 0xa1a2a3a4, Lane: 2}, ResetMsg{Session: uint32(NewSessionID(2, 5, 1000, 33)), PSN: 9, Reason: ResetUnknownSession}),
		carrying("reset-closed", "reset, reason 2: the session has ended, nothing from this psn on runs", reset,
			ResetMsg{Session: reset.Session, PSN: 0xffffffff, Reason: ResetClosed}),
	}
}

func goldenBare() []golden {
	empty, clean, nak, probe := head(Ack), head(Ack), head(Nak), head(Probe)
	empty.PSN, empty.Ack = 7, 6
	clean.PSN, clean.Ack = 0xfffffffe, 2
	nak.PSN, nak.Ack, nak.Sack = 11, 10, 1<<62|0b101
	probe.PSN = 1
	return []golden{
		bare("ack", "ack: the five requests from psn fffffffe to 2 succeeded and have no results", clean),
		bare("ack-empty", "ack with an empty run: everything up to psn 6 has run", empty),
		bare("nak", "nak: psn 11 is missing; 12, 14 and 74 are here", nak),
		bare("probe", "probe number 1", probe),
	}
}

func goldenRequests(t *testing.T) []golden {
	add := Record{Verb: VerbFetch, Op: opSum, Datatype: dtUint64, Key: 0x8877665544332211, Offset: 64, Operand: word}
	with := func(f func(*Record)) Record { r := add; f(&r); return r }
	at := func(offset uint64, operand ...byte) Record {
		return with(func(r *Record) { r.Offset, r.Operand = offset, append(operand, make([]byte, 8-len(operand))...) })
	}
	meant := func(r *Record) { r.Incarnation = 0x5a5b5c5d }
	again := request(t, "request-again", "request, sent again: fetch-add of one uint64", add)
	h := head(Request)
	h.Ops, h.Flags = 1, FlagRetx
	again.bytes = seal(h, again.bytes[HeaderLen:])
	again.check = func(t *testing.T, b []byte) { decode(t, opened(t, b, h), 1) }
	rides := request(t, "request-rider", "request: a base sum, which carries the ack of another session", with(func(r *Record) { r.Verb = VerbAtomic }))
	bears := head(Request)
	bears.Ops = 1
	bears.Carry(Rider{Session: uint32(NewSessionID(2, 5, 999, 8)), PSN: 0xfffffffe})
	rides.bytes = seal(bears, rides.bytes[HeaderLen:])
	rides.check = func(t *testing.T, b []byte) { decode(t, opened(t, b, bears), 1) }
	late := request(t, "request-delay", "request: a base sum, whose ack may be delayed", with(func(r *Record) { r.Verb = VerbAtomic }))
	later := head(Request)
	later.Ops, later.Flags = 1, FlagDelay
	late.bytes = seal(later, late.bytes[HeaderLen:])
	late.check = func(t *testing.T, b []byte) { decode(t, opened(t, b, later), 1) }
	long := request(t, "request-padded-long", "request: a fetch of one uint64, padded to 72 bytes", add)
	padded := head(Request)
	padded.Ops, padded.Flags = 1, FlagPadded
	records := long.bytes[HeaderLen:]
	payload := append(bytes.Clone(records), make([]byte, 72-len(records))...)
	Pad(payload, len(records), len(payload))
	long.bytes = seal(padded, payload)
	long.check = func(t *testing.T, b []byte) { decode(t, opened(t, b, padded), 1) }
	return []golden{
		rides,
		late,
		long,
		request(t, "request-single", "request: fetch-add of one uint64", add),
		again,
		request(t, "request-base", "request: add to one uint64, without result", with(func(r *Record) { r.Verb = VerbAtomic })),
		request(t, "request-compare", "request: compare-and-swap of one uint64",
			with(func(r *Record) { r.Verb, r.Op, r.Compare = VerbCompare, opCswap, bytes.Repeat([]byte{9}, 8) })),
		request(t, "request-read", "request: read of one uint64", with(func(r *Record) { r.Op, r.Operand = OpRead, nil })),
		request(t, "request-padded", "request: compare-and-swap of three uint8, padded",
			with(func(r *Record) {
				r.Verb, r.Op, r.Datatype, r.Count, r.Operand, r.Compare = VerbCompare, opCswap, dtUint8, 3, pattern(3), []byte{7, 8, 9}
			})),
		request(t, "request-incarnation", "request: fetch-add that means one registration of the key", with(meant)),
		request(t, "request-array", "request: the first three of ten elements, far into the region",
			with(func(r *Record) { r.Offset, r.Count, r.Total, r.Operand = 1<<33, 3, 10, pattern(24) })),
		request(t, "request-extents", "request: elements in four places of two regions; a key holds until the next",
			with(func(r *Record) { r.Count, r.Operand = 2, pattern(16) }), with(func(r *Record) { r.Offset, r.Count, r.Operand = 4096, 3, pattern(24) }),
			with(func(r *Record) { r.Key, r.Offset = 3, 8 }), with(func(r *Record) { r.Key, r.Offset, r.Datatype, r.Operand = 3, 16, dtUint8, pattern(1) })),
		request(t, "request-run-shared", "request: a run of four, which have the operand in common", at(0, 1), at(8, 1), at(800, 1), at(16, 1)),
		request(t, "request-run-apart", "request: a run of three, each with its operand", at(0, 1), at(8, 2), at(800, 3)),
		request(t, "request-run-incarnation", "request: a run of two that mean one registration", with(meant), with(func(r *Record) { meant(r); r.Offset = 72 })),
		request(t, "request-lookup", "request: catalogue entry of the region counters", Record{Verb: VerbLookup, Name: []byte("counters")}),
		request(t, "request-list", "request: catalogue entry number 5", Record{Verb: VerbList, Ordinal: 5}),
	}
}

func goldenResponses(t *testing.T) []golden {
	entry := Entry{Key: 0x8877665544332211, Size: 65536, Access: AccessRead | AccessWrite, Datatype: NoDatatype, Total: 6, Incarnation: 0x5a5b5c5d, Base: 0x7f0000001000}
	entry.SetName("counters")
	b := make([]byte, EntryLen)
	entry.Put(b)
	return []golden{
		response(t, "response-values", "response: two values, of 8 and of 3 bytes, and a record without", result{value: word}, result{}, result{value: pattern(3)}),
		response(t, "response-status", "response: the second and the third of four records failed", result{value: word},
			result{status: StatusNoKey}, result{status: StatusStale}, result{value: word}),
		response(t, "response-failed", "response: the only record failed", result{status: StatusOutOfBounds}),
		response(t, "response-entry", "response: a catalogue entry", result{value: b}),
	}
}

func goldenPackets(t *testing.T) (all []golden) {
	for i, l := range links()[:15] {
		name, about := l.Kind.String(), "packet: a probe in "+l.Kind.String()
		if l.VLAN == 4095 {
			continue
		}
		if l.VLAN != 0 {
			name, about = name+"-vlan", about+", tagged"
		}
		if i >= 9 {
			name, about = name+"-class", about+", codepoint 46, priority 5"
		}
		all = append(all, wrapped(t, "packet-"+name, about, l))
	}
	return all
}
