// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// What follows the records of a padded request is left out; a length of the records that
// cannot be is refused, and so is the flag in a frame of another type.
func TestPadding(t *testing.T) {
	const n, long = 24, 100
	records := bytes.Repeat([]byte{7}, n)
	frame := func(typ Type, said int) []byte {
		h := Header{Type: typ, Flags: FlagPadded, Ops: 1}
		b := make([]byte, HeaderLen+long)
		h.Put(b)
		copy(b[HeaderLen:], records)
		Pad(b[HeaderLen:], n, long)
		binary.LittleEndian.PutUint16(b[len(b)-padLen:], uint16(said))
		return b[:Seal(b, len(b))]
	}
	if _, payload, reason := Parse(frame(Request, n)); reason != ReasonOK || !bytes.Equal(payload, records) {
		t.Errorf("%v: payload % x, want % x", reason, payload, records)
	}
	for said, want := range map[int]Reason{
		0: ReasonBadPadding, minPayload - 1: ReasonBadPadding, minPayload: ReasonOK, long - padLen: ReasonOK,
		long - padLen + 1: ReasonBadPadding, long: ReasonBadPadding, 1<<16 - 1: ReasonBadPadding,
	} {
		if _, payload, reason := Parse(frame(Request, said)); reason != want || want == ReasonOK && len(payload) != said {
			t.Errorf("records of %d bytes of %d: %v, %d bytes; want %v", said, long, reason, len(payload), want)
		}
	}
	if _, _, reason := Parse(frame(Response, n)); reason != ReasonBadFlags {
		t.Errorf("a padded response: %v, want %v", reason, ReasonBadFlags)
	}
}

// The longest answer is known while records are written.
func TestAnswerLength(t *testing.T) {
	var w RecordWriter
	w.Reset(make([]byte, 1400), 1400)
	for range 20 {
		if !w.Append(&Record{Verb: VerbFetch, Op: OpRead, Datatype: dtUint64, Key: 1, Count: 5}) {
			t.Fatal("no room")
		}
	}
	if got, want := w.Answer(), statusHead+20*40; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}
